import { z } from 'zod'
import { limitChangeSchema } from '../../core/engine/job/quota.js'
import { ruleChangeSchema, ruleTargetSchema } from '../../core/engine/job/scheduling.js'
import { empty, json } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { Problem } from '../routing/problem.js'
import { defineRoute, type Route } from '../routing/route.js'
import { type PageText, pageAnswer } from '../service/page.js'
import { pageAssetRoute } from '../service/page-assets.js'
import type { LimitFacts } from './answers.js'
import { actOnFound, jobFacts, jobSearchSchema, searchJobs } from './job-search.js'
import { sessionCookie } from '../routing/page-session.js'
import { endRoute, isSecure, requireOwnPage } from '../service/session-routes.js'
import { requireOperator, requireOperatorKey } from './operator-access.js'
import { OverviewReader } from './overview.js'

const page: PageText = {
  name: 'operator',
  title: 'Operator · stemwork',
  style: 'operator-style.css',
  script: 'operator.js',
  withoutScript: [
    'This page needs JavaScript. Without it, use <code>stemwork jobs</code> and <code>stemwork schedule</code> in ' +
      'a terminal.',
  ],
}

const readers = new WeakMap<object, OverviewReader>()

function overviewOf({ service }: Call): OverviewReader {
  const reader = readers.get(service) ?? new OverviewReader(service.engine)
  readers.set(service, reader)
  return reader
}

const answer = { description: 'What the page shows.' }
const retryProblems = ['CONFLICT', 'GONE', 'QUEUE_FULL', 'QUOTA_EXCEEDED', 'DRAINING', 'SHUTTING_DOWN'] as const
const noStore = { headers: { 'cache-control': 'no-store' } }

/**
 * `/operator`: a page for the operators of the service, over all applications. Its interface is internal and not part
 * of the OpenAPI document.
 */
export const operatorPageRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/operator',
    operation: 'getOperatorPage',
    summary: 'A page to see and control the whole service',
    access: 'open',
    answer: { description: 'The page.', contentType: 'text/html' },
    handle: (call) => Promise.resolve(pageAnswer(call, page)),
  }),
  pageAssetRoute('operator', 'getOperatorAsset'),
  defineRoute({
    method: 'POST',
    path: '/operator/session',
    operation: 'signInAsOperator',
    summary: 'Sign in',
    access: 'open',
    body: z.strictObject({ key: z.string().max(1000) }),
    answer: { description: 'The session is in a cookie.', status: 204 },
    handle(call, { body: { key } }) {
      requireOwnPage(call)
      requireOperatorKey(call, key)
      const facts = { key, isRemembered: false, isSecure: isSecure(call) }
      return Promise.resolve(empty(204, { 'set-cookie': sessionCookie(call.service.seal, 'operator', facts) }))
    },
  }),
  endRoute('operator', '/operator/session', 'signOutAsOperator'),
  defineRoute({
    method: 'GET',
    path: '/operator/api/overview',
    operation: 'getOverview',
    summary: 'Overview of the whole store',
    access: 'open',
    answer,
    async handle(call) {
      requireOperator(call)
      return json(await overviewOf(call).read(), noStore)
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/operator/api/job',
    operation: 'searchJobs',
    summary: 'Jobs of all applications',
    access: 'open',
    answer,
    query: jobSearchSchema,
    async handle(call, { query }) {
      requireOperator(call)
      return json(await searchJobs(call.service.engine, query), noStore)
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/operator/api/job/:id',
    operation: 'getJobFacts',
    summary: 'Everything known about a job',
    access: 'open',
    answer,
    problems: ['NOT_FOUND'],
    async handle(call, { params }) {
      requireOperator(call)
      const job = await call.service.engine.get(params.id)
      if (!job) throw noJob()
      return json(await jobFacts(call.service.engine, job), noStore)
    },
  }),
  ...(['cancel', 'retry'] as const).map((action) =>
    defineRoute({
      method: 'POST',
      path: `/operator/api/job/:id/${action}`,
      operation: `${action}AnyJob`,
      summary: 'Cancels a job, or runs it again',
      access: 'open',
      answer,
      problems: ['NOT_FOUND', ...retryProblems],
      async handle(call, { params }) {
        requireOperator(call)
        const job = await call.service.engine[action](params.id)
        if (!job) throw noJob()
        overviewOf(call).forget()
        return json(await jobFacts(call.service.engine, job), noStore)
      },
    }),
  ),
  defineRoute({
    method: 'POST',
    path: '/operator/api/job/:id/delete',
    operation: 'deleteAnyJob',
    summary: 'Deletes a job',
    access: 'open',
    answer: { description: 'The job is deleted.', status: 204 },
    problems: ['NOT_FOUND'],
    async handle(call, { params }) {
      requireOperator(call)
      if (!(await call.service.engine.delete(params.id))) throw noJob()
      overviewOf(call).forget()
      return empty(204)
    },
  }),
  ...(['cancel', 'retry', 'delete'] as const).map((action) =>
    defineRoute({
      method: 'POST',
      path: `/operator/api/jobs/${action}`,
      operation: `${action}FoundJobs`,
      summary: 'Cancels, retries or deletes one page of the jobs that match a search',
      access: 'open',
      answer,
      body: jobSearchSchema,
      async handle(call, { body }) {
        requireOperator(call)
        const { after: _, ...filters } = body
        if (Object.values(filters).every((filter) => filter === undefined || filter.trim() === ''))
          throw new Problem(
            'BAD_INPUT',
            'Give a status, a workflow, an application or a text, so that not all jobs are affected.',
          )
        const done = await actOnFound(call.service.engine, action, body)
        overviewOf(call).forget()
        return json(done, noStore)
      },
    }),
  ),
  defineRoute({
    method: 'POST',
    path: '/operator/api/rule',
    operation: 'changeRule',
    summary: 'Pauses, drains, resumes or limits the service, a workflow or an application',
    access: 'open',
    answer,
    body: z.strictObject({ target: ruleTargetSchema, change: ruleChangeSchema }),
    async handle(call, { body }) {
      requireOperator(call)
      await call.service.engine.schedule(body.target, body.change)
      overviewOf(call).forget()
      return json(await overviewOf(call).read(), noStore)
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/operator/api/worker',
    operation: 'setWorkerState',
    summary: 'Lets a worker take jobs, or not',
    access: 'open',
    answer,
    body: z.strictObject({ name: z.string().min(1), state: z.enum(['open', 'cordoned', 'draining']) }),
    problems: ['NOT_FOUND'],
    async handle(call, { body }) {
      requireOperator(call)
      await call.service.engine.setWorkerState(body.name, body.state)
      overviewOf(call).forget()
      return json(await overviewOf(call).read(), noStore)
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/operator/api/application/:id/limits',
    operation: 'getAnyLimits',
    summary: 'What an application may do, and what it has used today',
    access: 'open',
    answer,
    problems: ['NOT_FOUND'],
    async handle(call, { params }) {
      requireOperator(call)
      return json(await limitsOf(call, params.id), noStore)
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/operator/api/application/:id/limits',
    operation: 'setAnyLimits',
    summary: 'Gives an application limits of its own',
    access: 'open',
    answer,
    body: limitChangeSchema.extend({ revision: z.string().optional() }),
    problems: ['NOT_FOUND', 'CONFLICT'],
    async handle(call, { params, body }) {
      requireOperator(call)
      await limitsOf(call, params.id)
      const { revision, ...change } = body
      await call.service.engine.setLimits(params.id, change, { revision })
      return json(await limitsOf(call, params.id), noStore)
    },
  }),
]

async function limitsOf({ service: { engine } }: Call, app: string): Promise<LimitFacts> {
  if (!(await engine.applications.getApplication(app))) throw noApplication()
  return await engine.limits(app)
}

function noApplication(): Problem {
  return new Problem('NOT_FOUND', 'There is no application with this id.')
}

function noJob(): Problem {
  return new Problem('NOT_FOUND', 'There is no job with this id, or it was deleted.')
}
