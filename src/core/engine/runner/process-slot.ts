import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { codeOf, internalError, StemworkError } from '../errors.js'
import { installedScript } from '../package-files.js'
import type { Logger } from '../ports/logger.js'
import type { KeptStep, RunOptions, RunSteps, WorkResult } from '../ports/runner.js'
import { childArguments, plugAndPlayArguments } from './child-arguments.js'
import { childEnvironment } from './child-environment.js'
import { reportProgress } from './inline-runner.js'
import { setSessionPriority } from './process-priority.js'
import {
  childMessageSchema,
  errorOf,
  failureOf,
  type HostMessage,
  type HostRequest,
  type StepAnswer,
} from './protocol.js'

const maxStderrLength = 8_000
/** A killed process exits within tens of milliseconds, unless a file operation blocks in the kernel. */
const maxExitWaitMs = 2_000
/** How long to wait for the last output of a dead child; a program that it started may keep its stderr open forever. */
const maxLastWordsMs = 100

export interface ChildSettings {
  niceness: number
  startTimeoutMs: number
  idleMs: number
  environment: Record<string, string>
  nodeArguments: readonly string[]
  logger: Logger
}

/**
 * A slot for one child process: forked when first needed, kept warm between orders, replaced after it died or was
 * killed.
 */
export class ProcessSlot {
  readonly #settings: ChildSettings
  #child: ChildProcess | undefined
  #ready = false
  #stderr = ''
  #idleTimer: NodeJS.Timeout | undefined
  #runs = 0
  #losses = 0

  constructor(settings: ChildSettings) {
    this.#settings = settings
  }

  /** Children that died or were killed, so that a later run had to start a new one. */
  get losses(): number {
    return this.#losses
  }

  /**
   * Runs one request at a time. Once it settles, no process of the run is left that could write to the order's folder.
   */
  async run(request: HostRequest, options: RunOptions): Promise<WorkResult> {
    options.signal.throwIfAborted()
    clearTimeout(this.#idleTimer)
    const child = this.#child?.connected ? this.#child : this.#start()
    this.#stderr = ''
    hold(child, true)
    try {
      return await this.#converse(child, request, options)
    } finally {
      if (this.#child === child) {
        hold(child, false)
        this.#idleTimer = setTimeout(() => void this.close(), this.#settings.idleMs).unref()
      }
    }
  }

  /** Kills the child if there is one; the next order starts a new one. */
  async close(): Promise<void> {
    clearTimeout(this.#idleTimer)
    const child = this.#child
    this.#child = undefined
    if (child) await kill(child)
  }

  // oxlint-disable-next-line max-lines-per-function -- listeners that share the state of one conversation
  #converse(
    child: ChildProcess,
    request: HostRequest,
    { signal, onProgress, onUse, checkpoint, steps }: RunOptions,
  ): Promise<WorkResult> {
    const run = ++this.#runs
    const jobId = request.type === 'run' ? request.order.jobId : undefined
    const { logger, startTimeoutMs } = this.#settings
    const detach = new AbortController()
    let isReady = this.#ready
    // Errors are ignored: if the channel is already closed, the exit follows, which tells more.
    const tell = (message: HostMessage) => void child.send(message, () => {})

    return new Promise<WorkResult>((resolve, reject) => {
      const killThenReject = (reason: unknown) => {
        this.#lose(child)
        detach.abort()
        void kill(child).then(() => reject(reason))
      }
      const onMessage = (value: unknown) => {
        // Other messages on the channel belong to the workflow.
        const message = childMessageSchema.safeParse(value).data
        if (message?.type === 'ready') {
          isReady = true
          clearTimeout(startTimer)
        }
        if (!message || message.type === 'ready' || message.run !== run) return
        if ('processorSeconds' in message) onUse?.(message.processorSeconds)
        if (message.type === 'done') {
          if (message.isLast) this.#retire(child, request)
          resolve(message.result)
        } else if (message.type === 'part') void store(message.part)
        else if (message.type === 'step') void answer(message.request, message.step)
        else if (message.type === 'failed') {
          const error = errorOf(message.failure)
          if (message.fatal) killThenReject(error)
          else reject(error)
        } else reportProgress(message.progress, onProgress, jobId, logger)
      }
      const store = async (part: number | undefined) => {
        if (part === undefined) return checkpoint?.stopped()
        await checkpoint?.store(part)
        tell({ type: 'stored', run })
      }
      const answer = async (request: number, step: KeptStep | string) =>
        tell({ type: 'stepAnswer', run, request, answer: await stepAnswer(steps, step) })
      const onHandBack = () => tell({ type: 'handBack', run })
      const onLost = async (cause?: unknown) => {
        this.#lose(child)
        // The exit may arrive before the last message, which tells more about how the run ended.
        await once(child, 'close', { signal: AbortSignal.timeout(maxLastWordsMs) }).catch(() => {})
        if (detach.signal.aborted) return
        const error = isReady ? workerLost(child, this.#stderr) : startFailed(child, this.#stderr, cause)
        logger.debug({ jobId, pid: child.pid, err: error }, 'a runner process ended during a run')
        reject(error)
      }
      const onSpawnError = (error: unknown) => {
        if (child.pid === undefined) void onLost(error)
      }
      const onExit = () => void onLost()
      const startTimer = this.#ready
        ? undefined
        : setTimeout(() => killThenReject(startedTooSlowly(startTimeoutMs, this.#stderr)), startTimeoutMs)

      child.on('message', onMessage).on('exit', onExit).on('error', onSpawnError)
      const whileAttached = { signal: detach.signal }
      signal.addEventListener('abort', () => killThenReject(signal.reason), whileAttached)
      checkpoint?.handBack.addEventListener('abort', onHandBack, whileAttached)
      detach.signal.addEventListener('abort', () => {
        clearTimeout(startTimer)
        child.off('message', onMessage).off('exit', onExit).off('error', onSpawnError)
      })

      tell({ ...request, run })
      if (checkpoint?.handBack.aborted) onHandBack()
    }).finally(() => detach.abort())
  }

  #start(): ChildProcess {
    const { environment, nodeArguments, niceness, logger } = this.#settings
    const child = fork(installedScript('core/engine/runner/main.js'), [], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'json',
      execArgv: [...childArguments, ...plugAndPlayArguments(), ...nodeArguments],
      env: childEnvironment(process.env, environment),
      // Its own process group: it can be killed with the programs that it started, and Ctrl-C only reaches the host.
      detached: process.platform !== 'win32',
    })
    this.#child = child
    this.#ready = false
    child.on('exit', () => this.#lose(child))
    child.on('error', () => {})
    child.on('message', (value) => {
      if (this.#child === child && childMessageSchema.safeParse(value).data?.type === 'ready') this.#ready = true
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (this.#child === child || this.#child === undefined)
        this.#stderr = (this.#stderr + text).slice(-maxStderrLength)
    })
    if (child.pid !== undefined) {
      setSessionPriority(child.pid, niceness).catch((error: unknown) => {
        logger.debug({ pid: child.pid, niceness, err: error }, 'the priority of a runner process could not be set')
      })
    }
    logger.debug({ pid: child.pid }, 'runner process started')
    return child
  }

  #retire(child: ChildProcess, request: HostRequest): void {
    this.#settings.logger.warn(
      request.type === 'run' ? { workflow: request.order.workflow, jobId: request.order.jobId } : {},
      'The process that ran the job is replaced: runs have left so much in its memory that it would soon run out. If ' +
        'this happens often, look for what the workflow keeps between runs.',
    )
    this.#lose(child)
    void kill(child)
  }

  #lose(child: ChildProcess): void {
    if (this.#child !== child) return
    this.#child = undefined
    this.#losses++
  }
}

async function stepAnswer(steps: RunSteps | undefined, step: KeptStep | string): Promise<StepAnswer> {
  try {
    if (typeof step === 'string') return { result: await steps?.finished(step) }
    return { result: { value: null, files: (await steps?.save(step)) ?? step.files } }
  } catch (error) {
    return { failure: failureOf(StemworkError.is(error) ? error : internalError(error)) }
  }
}

/** While held, the child keeps the host's process alive. */
function hold(child: ChildProcess, held: boolean): void {
  const action = held ? 'ref' : 'unref'
  child[action]()
  // Bun's channel has neither method; there, `child` alone suffices.
  const channel: Partial<NonNullable<ChildProcess['channel']>> | null | undefined = child.channel
  channel?.[action]?.()
  ;(child.stderr as Socket | null)?.[action]()
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  hold(child, true)
  const gone = once(child, 'exit', { signal: AbortSignal.timeout(maxExitWaitMs) })
  try {
    if (process.platform === 'win32') child.kill('SIGKILL')
    else process.kill(-child.pid, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
  await gone.catch(() => {})
}

/** Printed by V8 when its heap is full, and by `watchProcess` for other memory: a retry would fill it again. */
const memoryFull = /FATAL ERROR:.*(heap|memory|invalid (array|table) (length|size))/i

function workerLost(child: ChildProcess, stderr: string): StemworkError {
  const isMemoryFull = memoryFull.test(stderr)
  const bySystem = child.signalCode === 'SIGKILL' ? ', perhaps from the system, for lack of memory' : ''
  const ending = child.signalCode ? `signal ${child.signalCode}${bySystem}` : `exit code ${child.exitCode}`
  return new StemworkError(
    'INTERNAL_ERROR',
    isMemoryFull
      ? 'The process that ran the job ran out of memory and would do so again: the input is damaged or far too ' +
          'large. Send another copy of it.'
      : 'The process that worked on the job ended unexpectedly. Submit the job again; if that fails, too, tell the ' +
          'operator the job id.',
    {
      reason: 'worker_lost',
      retryable: !isMemoryFull,
      details: { exitCode: child.exitCode, signal: child.signalCode },
      cause: new Error(`the runner process ${child.pid} ended with ${ending}; ${endOf(stderr)}`),
    },
  )
}

const outOfBundles =
  'Keep stemwork out of the bundle (esbuild: --external:stemwork; webpack: externals; Next.js: ' +
  'serverExternalPackages), and leave its folder in node_modules complete.'

/**
 * The error for a child that ended before it was ready. A child that exits by itself does so every time; one that was
 * killed may start later.
 */
function startFailed(child: ChildProcess, stderr: string, cause: unknown): StemworkError {
  if (cause !== undefined) return notStarted(cause)
  if (child.exitCode === null) return workerLost(child, stderr)
  return new StemworkError(
    'RUNNER_UNAVAILABLE',
    `The child process that runs jobs exited with code ${child.exitCode} while it was starting; the cause contains ` +
      `its last output. Check that it finds its program and packages without the host's loaders (Yarn PnP, tsx, a ` +
      `bundle). ${outOfBundles} To give it arguments and environment variables, use createEngine({ child: { ` +
      'nodeArguments, environment } }).',
    { cause: new Error(`the runner process ${child.pid} ended with exit code ${child.exitCode}; ${endOf(stderr)}`) },
  )
}

function notStarted(cause: unknown): StemworkError {
  const text =
    `The system started no process for the job (${codeOf(cause)}). Check the limit of processes (ulimit -u), the ` +
    'memory, and that the folder in which this process was started is still there.'
  return new StemworkError(
    'INTERNAL_ERROR',
    'The service could not start a process for the job. Submit it again; if it fails again, tell the operator the ' +
      'job id.',
    { reason: 'worker_lost', retryable: true, cause: new Error(text, { cause }) },
  )
}

function startedTooSlowly(startTimeoutMs: number, stderr: string): StemworkError {
  return internalError(new Error(`the runner process was not ready after ${startTimeoutMs} ms; ${endOf(stderr)}`))
}

function endOf(stderr: string): string {
  return `the end of its stderr: ${stderr || '(nothing)'}`
}
