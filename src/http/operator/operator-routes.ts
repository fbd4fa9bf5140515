import { z } from 'zod'
import type { JobRecord } from '../../core/engine/job/job.js'
import { limitChangeSchema } from '../../core/engine/job/quota.js'
import { ruleChangeSchema, ruleTargetSchema } from '../../core/engine/job/scheduling.js'
import { searchWords } from '../../core/engine/job/search-text.js'
import type { HttpEngine } from '../http-engine.js'
import { empty, json } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { notFound, Problem } from '../routing/problem.js'
import { definePageRoute, type Route, type RouteDefinition } from '../routing/route.js'
import { pageAnswer, type PageText } from '../service/page.js'
import { pageAssetRoute } from '../service/page-assets.js'
import type { JobFacts, LimitFacts, Overview } from './answers.js'
import { actOnFound, jobFacts, jobSearchSchema, searchJobs } from './job-search.js'
import { sessionCookie, sessionOf } from '../routing/page-session.js'
import { endRoute, isSecure, requireOwnPage } from '../service/session-routes.js'
import { overviewReader } from './overview.js'
import { hash } from 'node:crypto'
import { sameHash } from '../auth/api-key.js'
import { clientAddress } from '../routing/wrong-keys.js'

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

const readers = new WeakMap<object, ReturnType<typeof overviewReader>>()

function overviewOf({ service }: Call) {
  const reader = readers.get(service) ?? overviewReader(service.engine)
  readers.set(service, reader)
  return reader
}

/** Defines a route for operators that returns what the page shows, or nothing (204). They see their changes at once. */
function pageRoute<
  Path extends string,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
>({ handle, ...facts }: PageRoute<Path, Query, Body>): Route {
  return definePageRoute({
    ...facts,
    access: 'open',
    async handle(call, input) {
      requireOperator(call)
      const shown = await handle(call, input)
      if (!facts.route.startsWith('GET ')) overviewOf(call).forget()
      return shown === undefined ? empty(204) : json(shown, { headers: { 'cache-control': 'no-store' } })
    },
  })
}

type Definition<Path extends string, Query extends z.ZodType, Body extends z.ZodType> = RouteDefinition<
  'open',
  Path,
  Query,
  Body
>

interface PageRoute<Path extends string, Query extends z.ZodType, Body extends z.ZodType> extends Omit<
  Definition<Path, Query, Body>,
  'access' | 'handle'
> {
  handle(...input: Parameters<Definition<Path, Query, Body>['handle']>): Promise<unknown>
}

/**
 * `/operator`: a page for the operators of the service, over all applications. Its interface is internal and not part
 * of the OpenAPI document.
 */
export const operatorPageRoutes: readonly Route[] = [
  definePageRoute({
    route: 'GET /operator',
    operation: 'getOperatorPage',
    access: 'open',
    handle: (call) => Promise.resolve(pageAnswer(call, page)),
  }),
  pageAssetRoute('operator', 'getOperatorAsset'),
  definePageRoute({
    route: 'POST /operator/session',
    operation: 'signInAsOperator',
    access: 'open',
    body: z.strictObject({ key: z.string().max(1000) }),
    handle(call, { body: { key } }) {
      requireOwnPage(call)
      requireOperatorKey(call, key)
      const facts = { key, isRemembered: false, isSecure: isSecure(call) }
      return Promise.resolve(empty(204, { 'set-cookie': sessionCookie(call.service.seal, 'operator', facts) }))
    },
  }),
  endRoute('operator', '/operator/session', 'signOutAsOperator'),
  pageRoute({
    route: 'GET /operator/api/overview',
    operation: 'getOverview',
    handle: (call) => overviewOf(call).read(),
  }),
  pageRoute({
    route: 'GET /operator/api/job',
    operation: 'searchJobs',
    query: jobSearchSchema,
    handle: ({ service: { engine } }, { query }) => searchJobs(engine, query),
  }),
  pageRoute({
    route: 'GET /operator/api/job/:id',
    operation: 'getJobFacts',
    handle: async ({ service: { engine } }, { params }) => factsOf(engine, await engine.get(params.id)),
  }),
  ...(['cancel', 'retry'] as const).map((action) =>
    pageRoute({
      route: `POST /operator/api/job/:id/${action}`,
      operation: `${action}AnyJob`,
      handle: async ({ service: { engine } }, { params }) => factsOf(engine, await engine[action](params.id)),
    }),
  ),
  pageRoute({
    route: 'POST /operator/api/job/:id/delete',
    operation: 'deleteAnyJob',
    async handle({ service: { engine } }, { params }) {
      if (!(await engine.delete(params.id))) throw noJob()
    },
  }),
  ...(['cancel', 'retry', 'delete'] as const).map((action) =>
    pageRoute({
      route: `POST /operator/api/jobs/${action}`,
      operation: `${action}FoundJobs`,
      body: jobSearchSchema,
      handle(call, { body }) {
        const { after: _, text = '', ...filters } = body
        const named = [searchWords(text).join(''), ...Object.values(filters)]
        if (named.every((filter) => filter === undefined || filter.trim() === ''))
          throw new Problem(
            'BAD_INPUT',
            'Give a status, a workflow, an application or a text, so that not all jobs are affected.',
          )
        return actOnFound(call.service.engine, action, body)
      },
    }),
  ),
  pageRoute({
    route: 'POST /operator/api/rule',
    operation: 'changeRule',
    body: z.strictObject({ target: ruleTargetSchema, change: ruleChangeSchema }),
    async handle(call, { body }) {
      await call.service.engine.schedule(body.target, body.change)
      return overviewAfterChange(call)
    },
  }),
  pageRoute({
    route: 'POST /operator/api/worker',
    operation: 'setWorkerState',
    body: z.strictObject({ name: z.string().min(1), state: z.enum(['open', 'cordoned', 'draining']) }),
    async handle(call, { body }) {
      await call.service.engine.setWorkerState(body.name, body.state)
      return overviewAfterChange(call)
    },
  }),
  pageRoute({
    route: 'GET /operator/api/application/:id/limits',
    operation: 'getAnyLimits',
    handle: (call, { params }) => limitsOf(call, params.id),
  }),
  pageRoute({
    route: 'POST /operator/api/application/:id/limits',
    operation: 'setAnyLimits',
    body: limitChangeSchema.extend({ revision: z.string().optional() }),
    async handle(call, { params, body }) {
      await limitsOf(call, params.id)
      const { revision, ...change } = body
      await call.service.engine.setLimits(params.id, change, { revision })
      return limitsOf(call, params.id)
    },
  }),
]

function overviewAfterChange(call: Call): Promise<Overview> {
  overviewOf(call).forget()
  return overviewOf(call).read()
}

function factsOf(engine: HttpEngine, job: JobRecord | undefined): Promise<JobFacts> {
  if (!job) throw noJob()
  return jobFacts(engine, job)
}

async function limitsOf({ service: { engine } }: Call, app: string): Promise<LimitFacts> {
  if (!(await engine.applications.getApplication(app))) throw notFound('There is no application with this id.')
  return await engine.limits(app)
}

function noJob(): Problem {
  return notFound('There is no job with this id, or it was deleted.')
}

/**
 * Admits the holder of the operator's key, which is not an application's key: from the header, or from the cookie of
 * the page's session.
 *
 * @throws Problem as `requireOperatorKey`.
 */
function requireOperator(call: Call): void {
  const header = call.request.headers.get('authorization')
  if (header !== null) return requireOperatorKey(call, header.replace(/^bearer\s+/i, '').trim())
  requireOperatorKey(call, sessionOf(call.request, call.service, 'operator')?.key ?? '')
}

/** @throws Problem `UNAUTHORIZED`; `RATE_LIMITED` for a wrong key after too many from one address. */
function requireOperatorKey(call: Call, given: string): void {
  const { options, wrongKeys } = call.service
  // Compared first, so that nobody at the same address locks the operator out. Hashed, so that the time reveals nothing
  // about the length either.
  if (options.operator && sameHash(hash('sha256', given), hash('sha256', options.operator.key))) return
  if (given !== '') {
    const address = clientAddress(call.request, options.trustProxy)
    wrongKeys.refuseExcess(address, 'any')
    wrongKeys.count(address, 'any')
  }
  throw new Problem('UNAUTHORIZED', "Send the operator's key as the raw value of the Authorization header.")
}
