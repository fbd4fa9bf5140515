import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '../../core/engine/ports/logger.js'
import { modelInfo } from '../../core/models/index.js'
import { importNative } from '../../core/models/session/native.js'
import { defaultRuntime } from '../../core/models/session/default-runtime.js'
import type { StemsSettings } from '../../core/workflows/separation/stems-workflow.js'
import { createEngine } from '../../create-engine.js'
import { type Command, type CommandInput, exitStatus, flag, UsageError } from '../command.js'
import { type Deployment, openDeployment } from '../service/deployment.js'
import { blobs, examine, ffmpeg, type Finding, type Outcome, folder, jobStore, nodeVersion } from './doctor-checks.js'
import { makeFolder } from '../files/local-file.js'
import { separationSettings } from '../workflows/model-options.js'
import { command as serveCommand, serviceRequest } from './serve.js'
import { serverAddress } from '../terminal/server-failure.js'
import { deploymentUrls, refuseRunning } from '../service/service-storage.js'
import { allWorkflows } from '../workflows/workflow-modules.js'

const stemsId = 'service/stems-vocals-accompaniment'
/** Networks of hundreds of megabytes may have to be read from a slow disk. */
const readyMs = 150_000

export const command: Command = {
  usage: 'doctor [options]',
  description:
    'Checks what `stemwork serve` needs with the same options, and says what to do. Exit status 0: no problem; 1: ' +
    'at least one.',
  options: { ...serveCommand.options, json: flag('Print JSON.') },
  notes:
    'It starts a child process and loads the network, writes a small file and a job to the storage, and removes ' +
    'both.\n' +
    'Only one process can use a SQLite store: stop the service first, or its store is reported as in use.',
  async run(input, { stdout }) {
    // Refuses values that `serve` would refuse.
    serviceRequest(input)
    const findings: Finding[] = []
    for await (const finding of examinations(input)) {
      findings.push(finding)
      if (!input.isOn('json')) stdout.write(line(finding))
    }
    const isWell = findings.every(({ status }) => status !== 'problem')
    if (input.isOn('json')) stdout.write(`${JSON.stringify({ ok: isWell, findings })}\n`)
    return isWell ? exitStatus.done : exitStatus.failed
  },
}

async function* examinations(input: CommandInput): AsyncGenerator<Finding, void, void> {
  yield await examine('node', async () => nodeVersion())
  if (!input.isOn('api-only')) yield* abilities(input)
  const { data } = deploymentUrls(input)
  const scratch = data === undefined ? tmpdir() : join(data, 'scratch')
  if (data !== undefined) yield await examine('data folder', () => folder(data, { isPrivate: true }))
  yield await examine('scratch folder', () => folder(scratch, { isPrivate: false }))
  yield* storage(input)
}

/** Checks for processes that run jobs. */
async function* abilities(input: CommandInput): AsyncGenerator<Finding, void, void> {
  const model = input.text('model') ?? 'embedded'
  let unavailable: ReadonlyMap<string, string> = new Map()
  const separation = await examine(
    'separation',
    async () => {
      const workflows = await allWorkflows(input, true)
      const engine = createEngine({ workflows, logger: silentLogger })
      try {
        await engine.ready()
        unavailable = engine.unavailableWorkflows()
      } finally {
        await engine.close({ timeoutMs: 0 })
      }
      const why = unavailable.get(stemsId)
      if (why !== undefined) return { status: 'problem', found: why }
      const { licence } = await modelInfo(model)
      return { status: 'ok', found: `a child process has loaded the model ${model} (licence: ${licence})` }
    },
    { timeoutMs: readyMs },
  )
  yield separation
  if (separation.status === 'ok') yield await examine('onnxruntime', () => runtime(separationSettings(input)))
  for (const [id, found] of unavailable) if (id !== stemsId) yield { check: id, status: 'problem', found }
  yield await examine('ffmpeg', ffmpeg)
}

/**
 * Reports which runtime runs the networks. Loads it here only after a child process has: a broken native library may
 * crash the process.
 */
async function runtime({ provider = 'cpu', runtime: choice = defaultRuntime() }: StemsSettings): Promise<Outcome> {
  const native = choice === 'wasm' ? undefined : await importNative().catch((error: Error) => error.message)
  if (native === undefined || typeof native === 'string') {
    const found = 'WebAssembly runs the networks, on the CPU'
    if (provider !== 'cpu')
      return { status: 'problem', found: `${found}, and --provider asks for ${provider}`, todo: useCpu }
    if (native === undefined) return { status: 'ok', found }
    return { status: 'note', found, todo: `The native library would be about three times as fast. ${native}` }
  }
  const names = native.listSupportedBackends().map(({ name }) => name)
  const found = `the native library runs the networks; it supports ${names.join(', ')}`
  if (names.includes(provider)) return { status: 'ok', found }
  return { status: 'problem', found: `${found}, and --provider asks for ${provider}`, todo: useCpu }
}

const useCpu = 'Install onnxruntime-node with that provider, or leave --provider out to use the CPU.'

async function* storage(input: CommandInput): AsyncGenerator<Finding, void, void> {
  const urls = deploymentUrls(input)
  let deployment: Deployment | undefined
  const store = { tried: serverAddress(urls.store) }
  const open = async (): Promise<Outcome> => {
    // As `serve` does: a database creates its file, but not its folder.
    if (urls.data !== undefined) await makeFolder(urls.data, 0o700)
    const opened = await openDeployment(urls, silentLogger)
    await refuseRunning(opened).catch(async (error: unknown) => {
      await opened.close()
      throw error
    })
    deployment = opened
    return {
      status: 'ok',
      found: deployment.durable ? 'jobs survive a restart' : 'nothing survives a restart (use --data to keep it)',
    }
  }
  yield await examine('storage', open, store)
  if (!deployment) return
  const { parts, durable, close } = deployment
  try {
    yield await examine('job store', () => jobStore(parts.jobs), store)
    const queue = async (): Promise<Outcome> => {
      await parts.queue.check()
      const isShared = parts.queue.traits.scope === 'shared'
      if (input.isOn('api-only') && !isShared) throw new UsageError('--api-only needs --store postgres://...')
      return { status: 'ok', found: isShared ? 'it answers' : 'of this process only' }
    }
    yield await examine('queue', queue, { tried: serverAddress(urls.queue ?? urls.store) })
    yield await examine('blobs', () => blobs(parts.blobs), { tried: serverAddress(urls.blobs) })
    yield await examine('link secret', async () => {
      const isKept = urls.data !== undefined || process.env.STEMWORK_LINK_SECRET !== undefined
      if (isKept || !durable) return { status: 'ok', found: isKept ? 'kept' : 'new for each process' }
      return {
        status: 'problem',
        found: 'none, but links must survive a restart',
        todo: 'Set --data <dir>, or STEMWORK_LINK_SECRET on every node.',
      }
    })
  } finally {
    await parts.queue.close().catch(() => {})
    await close().catch(() => {})
  }
}

function line({ check, status, found, todo }: Finding): string {
  const advice = todo === undefined ? '' : `\n${' '.repeat(26)}-> ${todo}`
  return `${status.padEnd(9)}${check.padEnd(17)}${found}${advice}\n`
}
