import { getHeapStatistics } from 'node:v8'
import { internalError, StemworkError } from '../errors.js'
import { readableError } from '../job/error-text.js'
import { requirePrograms } from '../program/find-program.js'
import { execute } from './execute.js'
import { memoryLimit } from '../workflow/memory-limit.js'
import { watchProcess } from './host-watch.js'
import { throttleProgress } from './progress-throttle.js'
import type { KeptStep, RunSteps, StepResult } from '../ports/runner.js'
import {
  type ChildMessage,
  errorOf,
  failureOf,
  type HostMessage,
  hostMessageSchema,
  type HostRequest,
  type StepAnswer,
} from './protocol.js'
import { workflowFromModule } from './workflow-module.js'
import { readFileSync } from 'node:fs'

// The entry point of the child process that processRunner forks: runs one order at a time from the channel until the
// host exits.

const progressIntervalMs = 100
const lastWordMs = 1000
/** V8's heap limit includes the young generation, which newer versions may make larger than the old space. */
const oldSpaceBytes =
  process.execArgv
    .map((argument) => Number(/^--max[-_]old[-_]space[-_]size=(\d+)$/.exec(argument)?.[1] ?? NaN) * 2 ** 20)
    // V8 applies the last one.
    .findLast((bytes) => !Number.isNaN(bytes)) ?? Infinity
/** The host ends a run by killing this process. */
const neverAborted = new AbortController().signal

let currentRun: number | undefined
let lastRequest = 0
let handBack = new AbortController()
let partStored = () => {}
/** Processor time when the run began, in seconds. */
let before = processorSeconds()
let stepRequests = new Map<number, (answer: StepAnswer) => void>()

function send(message: ChildMessage, sent?: () => void): void {
  process.send?.(message, undefined, undefined, () => sent?.())
}

/** SIGKILL, because a plain exit aborts with an error message while a thread of the inference library runs. */
function die(): void {
  process.kill(process.pid, 'SIGKILL')
}

function fail(run: number, thrown: unknown, fatal: boolean): void {
  const error = readableError(thrown)
  const failure = failureOf(StemworkError.is(error) ? error : internalError(error))
  send({ type: 'failed', run, failure, fatal, processorSeconds: processorSeconds() - before }, fatal ? die : undefined)
  if (fatal) setTimeout(die, lastWordMs)
}

async function take(message: HostRequest & { run: number }): Promise<void> {
  const { run } = message
  currentRun = run
  before = processorSeconds()
  handBack = new AbortController()
  stepRequests = new Map()
  const progress = throttleProgress(
    (value) => send({ type: 'progress', run, progress: value, processorSeconds: processorSeconds() - before }),
    progressIntervalMs,
  )
  try {
    const { module, settings } = message.type === 'run' ? message.order : message
    if (module === null) throw new TypeError('an order without a module cannot be run in a child')
    // A module that failed to load stays failed in this process: only a new process can try again.
    const workflow = await workflowFromModule(module, settings).catch((error: unknown) => void fail(run, error, true))
    if (!workflow) return
    if (message.type === 'prepare') {
      await requirePrograms(workflow)
      const details = (await workflow.prepare?.()) ?? {}
      send({ type: 'done', run, result: { outputs: {}, details } })
      return
    }
    const checkpoint = {
      handBack: handBack.signal,
      store: (part: number) => {
        send({ type: 'part', run, part })
        return new Promise<void>((resolve) => (partStored = resolve))
      },
      stopped: () => send({ type: 'part', run }),
    }
    const steps: RunSteps = {
      save: async (step) => (await askAboutStep(run, step))?.files ?? step.files,
      finished: (name) => askAboutStep(run, name),
    }
    const result = await execute(workflow, message.order, {
      signal: neverAborted,
      onProgress: progress.push,
      checkpoint,
      steps,
    })
    progress.flush()
    send({ type: 'done', run, result, isLast: isFull(), processorSeconds: processorSeconds() - before })
  } catch (error) {
    progress.flush()
    fail(run, error, false)
  } finally {
    currentRun = undefined
    memoryLimit[0] = 0
  }
}

/** Whether runs have left so much memory allocated that the process would soon die, with another workflow's job. */
function isFull(): boolean {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
  return used > Math.min(limit, oldSpaceBytes) / 2
}

function askAboutStep(run: number, step: KeptStep | string): Promise<StepResult | undefined> {
  const request = ++lastRequest
  return new Promise((resolve, reject) => {
    stepRequests.set(request, (answer) =>
      'failure' in answer ? reject(errorOf(answer.failure)) : resolve(answer.result),
    )
    send({ type: 'step', run, request, step })
  })
}

function receive(message: HostMessage): void {
  if (message.type === 'run' || message.type === 'prepare') return void take(message)
  if (message.run !== currentRun) return
  if (message.type === 'stepAnswer') stepRequests.get(message.request)?.(message.answer)
  else if (message.type === 'stored') partStored()
  else handBack.abort()
}

function lost(error: unknown): void {
  if (currentRun === undefined) die()
  else fail(currentRun, internalError(readableError(error)), true)
}

process.on('disconnect', die)
process.on('uncaughtException', lost)
process.on('unhandledRejection', lost)
// Ctrl-C and a service manager's stop reach the whole group, but the host decides what happens to a running job.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

watchProcess(memoryLimit)
process.on('message', (value) => {
  const message = hostMessageSchema.safeParse(value)
  if (message.success) receive(message.data)
  else lost(new TypeError('the host sent a message of another version of this library', { cause: message.error }))
})
send({ type: 'ready' })

/** Linux reports processor times in hundredths of a second, whatever its timer frequency. */
const ticksPerSecond = 100

/** Processor time of this process so far and, on Linux, of ended programs that it started. */
function processorSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + ofEndedPrograms()
}

function ofEndedPrograms(): number {
  if (process.platform !== 'linux') return 0
  try {
    // `cutime` and `cstime` (proc(5)) follow the name, which may contain spaces, and 13 other fields.
    const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1)?.split(' ') ?? []
    return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond || 0
  } catch {
    return 0
  }
}
