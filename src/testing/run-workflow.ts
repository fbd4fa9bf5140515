import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { internalError, StemworkError } from '../core/engine/errors.js'
import { jobError } from '../core/engine/job/failure.js'
import { fieldIssues, issuesText } from '../core/engine/job/field-issues.js'
import type { InputFile, KeptStep, RunSteps, WorkOrder } from '../core/engine/ports/runner.js'
import { execute } from '../core/engine/runner/execute.js'
import { checkInput } from '../core/engine/workflow/check-input.js'
import type { RunContext, Steps, Work } from '../core/engine/workflow/steps.js'
import type { Workflow } from '../core/engine/workflow/workflow.js'

export interface RunWorkflowOptions {
  /** Params as of a job; those of inputs may be left out. */
  params?: Record<string, unknown>
  /** Input files by the name of their param: paths, or their bytes. */
  inputs?: Record<string, string | Uint8Array>
  /** Results of `step.waitFor`, by its name. Without an entry, the wait times out at once. */
  events?: Record<string, unknown>
  /**
   * Failures in place of a step's next tries, by its name: an error to throw, or `'kill'`, as if the process died in
   * the middle of the step.
   */
  failures?: Record<string, readonly (Error | 'kill')[]>
  /** Attempts at the job. Default: as in the workflow's `policy`, else 3. */
  maxAttempts?: number
}

export interface WorkflowRun {
  status: 'SUCCEEDED' | 'FAILED'
  /** Why the run failed, as clients see it; its `cause` is the thrown error. */
  error: StemworkError | undefined
  details: Record<string, unknown>
  /** The files by output. */
  outputs: Record<string, Buffer>
  steps: Pick<KeptStep, 'name' | 'state' | 'attempts' | 'error'>[]
  /** Attempts since a step was last finished. Continuing after a wait is not a new attempt. */
  attempts: number
  /** Simulated time that passed in waits and retries, in milliseconds. */
  waitedMs: number
}

/**
 * Runs a workflow in a unit test, without an engine: waits take no time, and failures occur when the test says so.
 * Compositions need an engine (`createTestEngine`).
 *
 * @example
 * const run = await runWorkflow(teaser, {
 *   inputs: { inputUrl: 'song.wav' },
 *   events: { approval: { by: 'Ann' } },
 *   failures: { cut: ['kill', new Error('disk full')] },
 * })
 * expect(run).toMatchObject({ status: 'SUCCEEDED', details: { approval: { by: 'Ann' } } })
 * @throws StemworkError `INVALID_PARAMS` if the workflow would refuse the job
 */
export async function runWorkflow(workflow: Workflow, options: RunWorkflowOptions = {}): Promise<WorkflowRun> {
  const directory = await mkdtemp(join(tmpdir(), 'stemwork-test-'))
  try {
    return await new TestRun(workflow, options, directory).toEnd()
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 3 })
  }
}

class TestRun {
  readonly #workflow: Workflow
  readonly #options: RunWorkflowOptions
  readonly #directory: string
  readonly #steps = new Map<string, KeptStep>()
  readonly #failures: Map<string, (Error | 'kill')[]>
  readonly #startedAt = Date.now()
  #passedMs = 0
  #attempts = 1

  constructor(workflow: Workflow, options: RunWorkflowOptions, directory: string) {
    this.#workflow = workflow
    this.#options = options
    this.#directory = directory
    this.#failures = new Map(Object.entries(options.failures ?? {}).map(([name, list]) => [name, [...list]]))
  }

  async toEnd(): Promise<WorkflowRun> {
    const order = await this.#order()
    const { maxAttempts = this.#workflow.policy?.maxAttempts ?? 3 } = this.#options
    for (;;) {
      try {
        const result = await this.#attempt(order)
        if (result.waitsFor) {
          this.#passUntil(result.waitsFor)
          continue
        }
        const read = Object.entries(result.outputs).map(
          async ([name, { path }]) => [name, await readFile(path)] as const,
        )
        return this.#run({ details: result.details, outputs: Object.fromEntries(await Promise.all(read)) })
      } catch (thrown) {
        const error = StemworkError.is(thrown) ? thrown : internalError(thrown)
        if (this.#attempts >= maxAttempts || !error.retryable) return this.#run({ error })
        this.#attempts++
      }
    }
  }

  async #attempt(order: WorkOrder) {
    const { run } = this.#workflow
    const killed = new AbortController()
    const workflow = run
      ? {
          ...this.#workflow,
          run: (context: RunContext) => run({ ...context, step: this.#failing(context.step, killed) }),
        }
      : this.#workflow
    const host: RunSteps = {
      save: async (step) => {
        killed.signal.throwIfAborted()
        this.#steps.set(step.name, step)
        if (step.state === 'done') this.#attempts = 1
        return step.files
      },
      finished: async (name) => this.#steps.get(name),
    }
    const now = () => this.#startedAt + this.#passedMs
    const wait = async (ms: number) => void (this.#passedMs += ms)
    const options = { signal: killed.signal, onProgress: () => {}, steps: host, clock: { now, wait } }
    return await execute(workflow, { ...order, steps: [...this.#steps.values()] }, options)
  }

  #failing(step: Steps, killed: AbortController): Steps {
    const instead =
      <Value>(name: string, work: Work<Value>): Work<Value> =>
      async (context) => {
        const failure = this.#failures.get(name)?.shift()
        if (failure === undefined) return await work(context)
        if (failure !== 'kill') throw failure
        const cause = new Error(`The test killed the process in the step ${name}.`)
        killed.abort(internalError(cause))
        throw cause
      }
    return {
      run: (name, work, options) => step.run(name, instead(name, work), options),
      all: (works, options) =>
        step.all(
          Object.fromEntries(Object.entries(works).map(([name, work]) => [name, instead(name, work)])) as typeof works,
          options,
        ),
      sleep: (name, ms) => step.sleep(name, ms),
      waitFor: (name, options) => step.waitFor(name, options),
    }
  }

  /** Passes time until an event comes or the first wait ends. */
  #passUntil(names: readonly string[]): void {
    const waiting = names.flatMap((name) => this.#steps.get(name) ?? [])
    const event = waiting.find(({ name }) => Object.hasOwn(this.#options.events ?? {}, name))
    if (event) {
      const value = { event: this.#options.events?.[event.name] }
      this.#steps.set(event.name, { ...event, state: 'done', endedAt: this.#startedAt + this.#passedMs, value })
    } else
      this.#passedMs = Math.max(this.#passedMs, Math.min(...waiting.map(({ until }) => until ?? 0)) - this.#startedAt)
  }

  async #order(): Promise<WorkOrder> {
    const inputs: Record<string, InputFile> = {}
    for (const [name, given] of Object.entries(this.#options.inputs ?? {})) {
      const path = typeof given === 'string' ? given : join(this.#directory, `input-${name}`)
      if (typeof given !== 'string') await writeFile(path, given)
      const found = await stat(path).catch((cause: unknown) => {
        const message = `inputs.${name}: there is no file "${path}". Pass the path of one, or its bytes as a Buffer.`
        throw new StemworkError('INVALID_PARAMS', message, { cause })
      })
      inputs[name] = { path, bytes: found.size }
    }
    const addresses = Object.fromEntries(Object.keys(inputs).map((name) => [name, `http://localhost/${name}`]))
    const params = { ...addresses, ...this.#options.params }
    const { id: workflow } = this.#workflow
    const checked = checkInput(this.#workflow.params, params)
    if (!checked.success) {
      const problems = issuesText(fieldIssues(checked.issues, ['params']), checked.issues.length)
      throw new StemworkError('INVALID_PARAMS', `Invalid params for ${workflow}: ${problems}.`)
    }
    const limits = { maxAudioSeconds: Infinity }
    return { jobId: 'test', workflow, module: null, settings: null, params, inputs, directory: this.#directory, limits }
  }

  #run({
    error,
    details = {},
    outputs = {},
  }: Partial<Pick<WorkflowRun, 'error' | 'details' | 'outputs'>>): WorkflowRun {
    const steps = [...this.#steps.values()].map(({ name, state, attempts, error: why }) => {
      return { name, state, attempts, error: why }
    })
    const reported = error && new StemworkError(jobError(error).code, error.message, { cause: error.cause ?? error })
    const status = error ? 'FAILED' : 'SUCCEEDED'
    return { status, error: reported, details, outputs, steps, attempts: this.#attempts, waitedMs: this.#passedMs }
  }
}
