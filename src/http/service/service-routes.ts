import { z } from 'zod'
import { empty, json, text } from '../routing/answer.js'
import { rotateWebhookSecret } from '../auth/applications.js'
import { nextPageWords, pageQuerySchema } from '../jobs/job-list.js'
import { notFound } from '../routing/problem.js'
import { defineRoute } from '../routing/route.js'
import {
  applicationViewSchema,
  newWebhookSecretSchema,
  webhookSecretSchema,
  workflowListSchema,
  workflowViewSchema,
} from '../schemas.js'
import { workflowView } from './workflow-view.js'
import { prefersHtml } from '../routing/accept.js'

export const serviceRoutes = [
  defineRoute({
    route: 'GET /application',
    operation: 'getApplication',
    summary: 'Get the application of the API key',
    answer: { description: 'The application.', schema: applicationViewSchema },
    async handle(call) {
      const { id, name } = call.caller
      const { engine, options } = call.service
      // A known key has the name that the application had when the key was first seen, which may be outdated.
      const stored = options.authenticate ? undefined : await engine.applications.getApplication(id)
      return json({ id, name: stored?.name ?? name })
    },
  }),
  defineRoute({
    route: 'POST /application/webhook-secret',
    operation: 'rotateWebhookSecret',
    summary: 'Replace the webhook secret of the application',
    description:
      'It is shown only in this response. Until `overlapSeconds` have passed, messages are also signed with the ' +
      'old secret.',
    bucket: 'create',
    body: newWebhookSecretSchema,
    answer: { description: 'The new secret.', schema: webhookSecretSchema },
    problems: ['NOT_FOUND'],
    async handle(call, { body: { secret, overlapSeconds } }) {
      const { applications } = call.service.engine
      const { id } = call.caller
      if (!(await applications.getApplication(id)))
        throw notFound('The service does not manage this application. Ask the operator for its secret.')
      const overlapMs = overlapSeconds === undefined ? undefined : overlapSeconds * 1000
      return json({ secret: await rotateWebhookSecret(applications, id, { secret, overlapMs }) })
    },
  }),
  defineRoute({
    route: 'GET /workflow',
    operation: 'listWorkflows',
    summary: 'List the workflows that jobs can run',
    query: pageQuerySchema,
    answer: {
      description: 'The workflows.',
      schema: workflowListSchema,
      headers: { Link: nextPageWords, 'X-Total-Count': 'Workflows on all pages.' },
    },
    async handle(call, { query: { page = 0, size = 100 } }) {
      const { engine } = call.service
      const all = engine.workflows.offers()
      const unavailable = engine.unavailableWorkflows()
      const workflows = all
        .slice(page * size, (page + 1) * size)
        .map(({ id, workflow: { id: own, name, description } }) => ({
          id,
          name,
          description,
          aliasOf: id === own ? undefined : own,
          unavailable: unavailable.get(own),
        }))
      const headers: Record<string, string> = { 'x-total-count': String(all.length) }
      if ((page + 1) * size < all.length)
        headers.link = `<${call.baseUrl}/workflow?page=${page + 1}&size=${size}>; rel="next"`
      return json({ workflows }, { headers })
    },
  }),
  defineRoute({
    route: 'GET /workflow/**:id',
    operation: 'getWorkflow',
    summary: 'Get a workflow with the schema of its params',
    answer: { description: 'The workflow.', schema: workflowViewSchema },
    problems: ['NOT_FOUND'],
    async handle(call, { params }) {
      const { engine } = call.service
      const id = params.id.replaceAll(/%2f/gi, '/')
      const workflow = engine.workflows.get(id)
      if (!workflow) throw notFound('There is no workflow with this id. GET /workflow lists all workflows.')
      const unavailable = engine.unavailableWorkflows().get(workflow.id)
      const aliasOf = id === workflow.id ? undefined : workflow.id
      return json({ ...workflowView(workflow, engine.options.limits), id, aliasOf, unavailable })
    },
  }),
]

const healthSchema = z
  .object({ ok: z.boolean(), problems: z.array(z.string()), warnings: z.array(z.string()) })
  .meta({ id: 'Health' })

export const operatorRoutes = [
  defineRoute({
    route: 'GET /healthz',
    operation: 'isAlive',
    summary: 'Check whether the process is up',
    access: 'open',
    atRoot: true,
    answer: { description: 'The process is up.', schema: z.object({ ok: z.boolean() }) },
    handle: async () => json({ ok: true }),
  }),
  defineRoute({
    route: 'GET /readyz',
    operation: 'isReady',
    summary: 'Check whether the service is ready',
    description:
      'If it is not ready, the response is 503 with the problems. A workflow that lacks something, such as a ' +
      'program, is one of the `warnings` as long as others can run.',
    access: 'open',
    atRoot: true,
    answer: { description: 'The service is ready.', schema: healthSchema },
    async handle({ service }) {
      const { ok, problems, warnings } = await service.engine.health()
      return json({ ok, problems, warnings }, { status: ok ? 200 : 503 })
    },
  }),
  defineRoute({
    route: 'GET /metrics',
    operation: 'getMetrics',
    summary: 'Get metrics in the text format of Prometheus',
    description: 'Off by default.',
    access: 'open',
    atRoot: true,
    answer: { description: 'The metrics.', contentType: 'text/plain' },
    problems: ['NOT_FOUND'],
    async handle({ service }) {
      if (!service.metrics)
        throw notFound('Metrics are turned off. The operator can turn them on with the option `metrics`.')
      return text(await service.metrics.text(), 'text/plain; version=0.0.4; charset=utf-8', {
        'cache-control': 'no-store',
      })
    },
  }),
]

const indexSchema = z.object({ name: z.string(), links: z.record(z.string(), z.string()) }).meta({ id: 'Index' })

/** The address that people type first. Browsers are redirected to a page; programs get links. */
export const indexRoute = defineRoute({
  route: 'GET /',
  operation: 'getIndex',
  summary: 'List the entry points of the service',
  description: 'Redirects browsers to a page, if the service has one.',
  access: 'open',
  atRoot: true,
  answer: { description: 'The addresses of the documentation and the pages.', schema: indexSchema },
  otherAnswers: { 307: 'To the console or the documentation, for a client that prefers HTML.' },
  async handle(call) {
    const { console: hasConsole, docs } = call.service.options
    const page = hasConsole ? 'console' : docs ? 'docs' : undefined
    if (page && prefersHtml(call.request.headers.get('accept')))
      return empty(307, { location: `${call.baseUrl}/${page}`, vary: 'accept' })
    const paths = [...(hasConsole ? ['console'] : []), ...(docs ? ['docs', 'openapi.json'] : []), 'workflow', 'job']
    const links = Object.fromEntries(paths.map((path) => [path, `${call.baseUrl}/${path}`]))
    return json({ name: 'stemwork', links }, { headers: { vary: 'accept' } })
  },
})
