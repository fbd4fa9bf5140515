// The part of Replicate's HTTP API that programs use (create, get, cancel, Prefer: wait, webhooks), over an engine. A
// program with the npm package `replicate` sets its `baseUrl` and runs `service/stems-vocals-accompaniment` as a model.
import { createHmac, randomUUID } from 'node:crypto'
import { createEngine } from 'stemwork'
import { applicationSecret, createApplication, createHandler, issueKey } from 'stemwork/http'
import { serve } from 'stemwork/node'

const statuses = { QUEUED: 'starting', STARTED: 'processing', SUCCEEDED: 'succeeded', FAILED: 'failed' }

class Refusal extends Error {
  constructor(response) {
    super(response.statusText)
    this.response = response
  }
}

/** A job as a prediction. */
function prediction(job, origin) {
  const get = `${origin}/v1/predictions/${job.id}`
  return {
    id: job.id,
    model: job.workflow.id,
    version: job.workflow.id,
    input: job.workflowParams,
    output: job.result,
    logs: '',
    error: job.error?.message ?? null,
    status: job.error?.code === 'CANCELED' ? 'canceled' : statuses[job.status],
    created_at: job.createdAt,
    started_at: job.startedAt,
    completed_at: job.completedAt,
    urls: { get, cancel: `${get}/cancel` },
  }
}

/**
 * A handler under /v1. Every request goes through the service's own handler, so its keys and limits apply. Webhooks go
 * only to the given origins: otherwise programs could reach hosts that only this server can reach.
 */
export function replicateApi(engine, service, webhookSecret, webhookOrigins = []) {
  /** The webhooks of each job. They are lost with this process; the service's own (POST /job) survive it. */
  const receivers = new Map()

  async function ask(request, path, { method = 'GET', body, headers = {} } = {}) {
    const authorization = request.headers.get('authorization') ?? ''
    const init = { method, headers: { authorization, 'content-type': 'application/json', ...headers } }
    const sent = new Request(new URL(`/v1${path}`, request.url), body ? { ...init, body: JSON.stringify(body) } : init)
    const answer = await service(sent)
    const json = await answer.json()
    if (answer.ok) return json
    // Programs show the field `detail`.
    throw new Refusal(Response.json({ ...json, detail: json.message }, { status: answer.status }))
  }

  const asked = async (request, path, options) =>
    Response.json(prediction(await ask(request, path, options), new URL(request.url).origin))

  async function create(request, model) {
    const { id: app } = await ask(request, '/application') // first: strangers may send no body
    const given = (await request.json().catch(() => null)) ?? {}
    const { version, input, webhook, webhook_events_filter: events = ['start', 'completed'] } = given
    if (webhook && !(URL.canParse(webhook) && webhookOrigins.includes(new URL(webhook).origin)))
      throw new Refusal(Response.json({ detail: 'webhook: its origin is not in WEBHOOK_ORIGINS.' }, { status: 422 }))
    const body = { workflow: model ?? version, params: input, metadata: { prediction: randomUUID() } }
    if (webhook) receivers.set(body.metadata.prediction, { request, app, webhook, events })
    const { id } = await ask(request, '/job', { method: 'POST', body })
    const headers = { prefer: request.headers.get('prefer')?.replace(/^wait$/, 'wait=60') ?? '' }
    const made = await (await asked(request, `/job/${id}`, { headers })).json()
    // The client takes any other status as final.
    return Response.json({ ...made, status: made.completed_at ? made.status : 'starting' }, { status: 201 })
  }

  async function announce(job, event) {
    const { request, app, webhook, events } = receivers.get(job.metadata.prediction) ?? {}
    if (event === 'completed') receivers.delete(job.metadata.prediction)
    if (!events?.includes(event)) return
    const body = await (await asked(request, `/job/${job.id}`)).text()
    const [id, timestamp] = [randomUUID(), String(Math.floor(Date.now() / 1000))]
    const key = Buffer.from(applicationSecret(webhookSecret, app).slice('whsec_'.length), 'base64')
    const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
    const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
    const sent = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body }
    await fetch(webhook, { ...sent, redirect: 'error', signal: AbortSignal.timeout(15_000) })
  }
  engine.on('job.started', ({ job }) => announce(job, 'start'))
  for (const name of ['job.succeeded', 'job.failed']) engine.on(name, ({ job }) => announce(job, 'completed'))

  const cancel = { method: 'POST' }
  const routes = [
    ['POST', /^\/v1\/predictions$/, (request) => create(request)],
    ['POST', /^\/v1\/models\/(.+)\/predictions$/, create],
    ['GET', /^\/v1\/predictions\/([^/]+)$/, (request, id) => asked(request, `/job/${id}`)],
    ['POST', /^\/v1\/predictions\/([^/]+)\/cancel$/, (request, id) => asked(request, `/job/${id}/cancel`, cancel)],
    ['GET', /^\/v1\/webhooks\/default\/secret$/, secret],
  ]

  async function secret(request) {
    return Response.json({ key: applicationSecret(webhookSecret, (await ask(request, '/application')).id) })
  }

  return async (request, context) => {
    const { pathname } = new URL(request.url)
    for (const [method, path, handle] of routes) {
      const [found, part] = (request.method === method && path.exec(pathname)) || []
      if (!found) continue
      try {
        return await handle(request, part)
      } catch (error) {
        if (error instanceof Refusal) return error.response
        throw error
      }
    }
    return service(request, context)
  }
}

if (process.argv[1] === import.meta.filename) {
  const webhookSecret = `whsec_${Buffer.from(process.env.SECRET ?? randomUUID()).toString('base64')}`
  const engine = createEngine()
  await engine.start()
  const application = await createApplication(engine.applications, { name: 'my shop' })
  const { key } = await issueKey(engine.applications, application.id)
  const webhookOrigins = (process.env.WEBHOOK_ORIGINS ?? '').split(',')
  const handler = replicateApi(engine, createHandler(engine, { basePath: '/v1' }), webhookSecret, webhookOrigins)
  const { origin } = await serve(handler, { port: Number(process.env.PORT ?? 8080) })
  console.log(`${origin}/v1 with API key ${key}`)
}
