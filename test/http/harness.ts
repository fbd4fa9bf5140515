import { onTestFinished } from 'vitest'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import { type EngineParts, JobEngine } from '../../src/core/engine/engine.js'
import type { EngineSettings } from '../../src/core/engine/options.js'
import type { BlobStore } from '../../src/core/engine/ports/blob-store.js'
import { silentLogger } from '../../src/core/engine/ports/logger.js'
import type { Workflow } from '../../src/core/engine/workflow/workflow.js'
import { inlineRunner } from '../../src/core/engine/runner/inline-runner.js'
import { createApplication, createHandler, type Handler, type HandlerSettings, issueKey } from '../../src/http/index.js'
import { type RunningServer, serve } from '../../src/http/mounts/node.js'
import { copyingStems, heldWorkflow, stemsId } from './light-workflows.js'

export interface Service {
  engine: JobEngine
  handler: Handler
  server: RunningServer
  /** Base address of the API. */
  base: string
  app: { id: string; key: string }
  /** Lets jobs of `service/held` continue. */
  release(): void
  /** A request with the application's key. */
  api(path: string, init?: RequestInit & { key?: string }): Promise<Response>
  /** The answer to a request for a job, of `service/held` unless the fields say otherwise. */
  submit(fields?: object, init?: RequestInit & { key?: string }): Promise<Response>
  /** The ID of a job created in this way. */
  created(fields?: object, init?: RequestInit & { key?: string }): Promise<string>
  /** Uploads bytes and returns the URL to use as an input. */
  uploaded(bytes: Uint8Array): Promise<string>
  addApplication(name: string): Promise<{ id: string; key: string }>
  close(): Promise<void>
}

export interface ServiceSettings {
  http?: HandlerSettings
  engine?: EngineSettings
  blobs?: BlobStore
  /** Default: memory stores. */
  stores?: Partial<Pick<EngineParts, 'jobs' | 'applications'>>
  /** Default: peaks cannot be measured. */
  audioPeaks?: EngineParts['audioPeaks']
  /** Workflows beside the light ones. */
  workflows?: readonly Workflow[]
  /** Whether the engine runs jobs. Default: true. */
  worker?: boolean
}

/**
 * An engine on memory adapters with light workflows, behind a real socket. Tests send more requests than the default
 * rates allow, so rate limits are off.
 */
export async function startService(settings: ServiceSettings = {}): Promise<Service> {
  const held = heldWorkflow()
  const workflows = [copyingStems(), held.workflow, ...(settings.workflows ?? [])]
  const engine = new JobEngine(
    {
      jobs: memoryJobs(),
      queue: memoryQueue(),
      blobs: settings.blobs ?? memoryBlobs(),
      applications: memoryApplications(),
      ...settings.stores,
      runner: inlineRunner({
        resolve(id) {
          const workflow = workflows.find((one) => one.id === id)
          if (!workflow) throw new Error(`no workflow ${id}`)
          return workflow
        },
      }),
      workflows,
      audioPeaks: settings.audioPeaks,
    },
    {
      logger: silentLogger,
      ...settings.engine,
      dispatch: { concurrency: 4, progressIntervalMs: 10, retryDelayMs: 10, ...settings.engine?.dispatch },
    },
  )
  if (settings.worker !== false) await engine.start()
  const handler = createHandler(engine, {
    basePath: '/v1',
    rateLimits: { create: false, other: false },
    ...settings.http,
  })
  const server = await serve(handler, { port: 0 })
  const addApplication = async (name: string) => {
    const { id } = await createApplication(engine.applications, { name })
    return { id, key: (await issueKey(engine.applications, id)).key }
  }
  const app = await addApplication('Test application')
  const base = `${server.origin}/v1`

  const api: Service['api'] = (path, { key = app.key, ...init } = {}) =>
    fetch(base + path, {
      ...init,
      headers: {
        authorization: key,
        ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...Object.fromEntries(new Headers(init.headers)),
      },
    })

  const submit: Service['submit'] = (fields, init) =>
    api('/job', { method: 'POST', body: JSON.stringify({ workflow: 'service/held', params: {}, ...fields }), ...init })

  return {
    engine,
    handler,
    server,
    base,
    app,
    release: held.release,
    api,
    submit,
    async created(fields, init) {
      const answer = await submit(fields, init)
      if (answer.status !== 200) throw new Error(`job: ${answer.status} ${await answer.text()}`)
      return ((await answer.json()) as { id: string }).id
    },
    addApplication,
    async uploaded(bytes) {
      const ticket = (await (await api('/upload')).json()) as { uploadUrl: string; downloadUrl: string }
      const answer = await fetch(ticket.uploadUrl, { method: 'PUT', body: bytes })
      if (answer.status !== 200) throw new Error(`upload: ${answer.status} ${await answer.text()}`)
      return ticket.downloadUrl
    },
    async close() {
      await server.close({ timeoutMs: 100 })
      await engine.close({ timeoutMs: 0 })
    },
  }
}

/** Polls a job until `done`, like a client. */
export async function pollJob(
  service: Service,
  id: string,
  done: (job: JobJson) => boolean = isEnded,
): Promise<JobJson> {
  for (;;) {
    const job = (await (await service.api(`/job/${id}`)).json()) as JobJson
    if (done(job)) return job
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** A job of `copyingStems` that has ended. @param input bytes, or their address */
export async function separated(service: Service, input: Uint8Array | string, fields?: object): Promise<JobJson> {
  const inputUrl = typeof input === 'string' ? input : await service.uploaded(input)
  return pollJob(service, await service.created({ workflow: stemsId, params: { inputUrl }, ...fields }))
}

/** A service that ends with the test that calls this. */
export async function serviceOfTest(settings?: ServiceSettings): Promise<Service> {
  const service = await startService(settings)
  onTestFinished(() => service.close())
  return service
}

export interface JobJson {
  id: string
  name: string | null
  status: string
  workflow: { id: string; name: string; description: string }
  workflowParams: Record<string, unknown>
  result: Record<string, string> | null
  files: Record<string, { fileName: string }> | null
  details: Record<string, unknown> | null
  error: { code: string; title: string; message: string; reason: string | null; retryable: boolean } | null
  createdAt: string
  startedAt: string | null
  completedAt: string | null
  app: string
  batchName: string | null
  metadata: Record<string, string>
  progress: number
  stage: string | null
  expiresAt: string | null
}

function isEnded(job: JobJson): boolean {
  return job.status === 'SUCCEEDED' || job.status === 'FAILED'
}
