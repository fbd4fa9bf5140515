import { z } from 'zod'
import { ruleChangeSchema, ruleTargetSchema } from '../../core/engine/job/scheduling.js'
import { empty, json, text } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { Problem } from '../routing/problem.js'
import { defineRoute, type Route } from '../routing/route.js'
import { pageHeaders } from '../service/console.js'
import { pageAsset } from '../service/page-assets.js'
import { actOnFound, jobFacts, jobSearchSchema, searchJobs } from './job-search.js'
import { requireOperator } from './operator-access.js'
import { OverviewReader } from './overview.js'

// Relative, so that it also works under a path that a proxy adds.
const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Operator · stemwork</title>
<link rel="icon" href="operator/icon.svg">
<link rel="stylesheet" href="operator/operator-style.css">
<script type="module" src="operator/operator.js"></script>
</head>
<body>
<div id="app"></div>
<noscript>
<main class="plain-page">
<h1>stemwork</h1>
<p>This page needs JavaScript. Without it, use <code>stemwork jobs</code> and <code>stemwork schedule</code> in a terminal.</p>
</main>
</noscript>
</body>
</html>
`

const readers = new WeakMap<object, OverviewReader>()

function overviewOf({ service }: Call): OverviewReader {
  const reader = readers.get(service) ?? new OverviewReader(service.engine)
  readers.set(service, reader)
  return reader
}

const answer = { description: 'What the page shows.' }
const retryProblems = ['CONFLICT', 'GONE', 'QUEUE_FULL', 'QUOTA_EXCEEDED', 'DRAINING', 'SHUTTING_DOWN'] as const
const noStore = { headers: { 'cache-control': 'no-store' } }

/** `/operator`: a page for who runs the service, over all applications. Its interface is its own, and not part of the described one. */
export const operatorPageRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/operator',
    operation: 'getOperatorPage',
    summary: 'A page to see and control the whole service',
    access: 'open',
    answer: { description: 'The page.', contentType: 'text/html' },
    async handle(call) {
      // The page's relative addresses need it to end without a slash.
      if (call.request.address().pathname.endsWith('/')) return empty(308, { location: '../operator' })
      return text(html, 'text/html; charset=utf-8', pageHeaders(call))
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/operator/:asset',
    operation: 'getOperatorAsset',
    summary: 'A part of the page',
    access: 'open',
    answer: { description: 'The part.', contentType: 'text/javascript' },
    problems: ['NOT_FOUND'],
    handle: (call, { params }) => pageAsset(call, params.asset),
  }),
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
]

function noJob(): Problem {
  return new Problem('NOT_FOUND', 'There is no job with this id, or it was deleted.')
}
