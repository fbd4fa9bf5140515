import { type ErrorCode, StemworkError } from '../../errors.js'
import type { JobRecord } from '../../job/job.js'
import { jobAttributes } from '../../job/span-attributes.js'
import type { TraceContext } from '../../job/trace-context.js'
import type { RunSteps, StepState } from '../../ports/runner.js'
import { type Span, traced, type Tracing } from '../../ports/tracing.js'

/** Spans of an attempt in its job's trace: one for the whole, one for each step, and in the run one for each stage. */
export class AttemptSpans {
  readonly #tracing: Tracing
  readonly #span: Span
  #cause: unknown
  /** Context of the run. */
  #run: TraceContext | undefined

  constructor(tracing: Tracing, job: JobRecord) {
    this.#tracing = tracing
    this.#span = tracing.begin({
      name: `process ${job.workflow}`,
      kind: 'consumer',
      // Set, so that the span active in this process at the claim does not become the parent.
      parent: job.trace,
      attributes: {
        'messaging.operation.name': 'process',
        'messaging.operation.type': 'process',
        'stemwork.attempt': job.token,
        'stemwork.worker': job.lease?.owner ?? '',
        ...jobAttributes(job),
      },
    })
  }

  /** @param work returns the settled record; `undefined` if the lease was lost */
  async whole(work: () => Promise<JobRecord | undefined>): Promise<JobRecord | undefined> {
    try {
      const settled = await this.#span.within(work)
      this.#span.set({ 'stemwork.job.status': settled?.status ?? 'lost' })
      this.#span.end(this.#cause)
      return settled
    } catch (error) {
      this.#span.end(error)
      throw error
    }
  }

  /** Notes why the attempt ended without results; a shutdown is not a failure. */
  fail(cause: unknown): void {
    if (!(StemworkError.is(cause) && cause.code === 'SHUTTING_DOWN')) this.#cause = cause
  }

  step<Result>(name: string, work: (span: Span) => Promise<Result>): Promise<Result> {
    // The active span would be wrong: work that waited for a slot is started by the run that freed it.
    return traced(this.#tracing, { name, kind: 'internal', parent: this.#span.context ?? null }, work)
  }

  /** Records an ended try of a workflow's step, or an ended wait. */
  ended({ name, state, startedAt, attempts, error }: StepState): void {
    if (state === 'waiting') return
    const attributes = { 'stemwork.step': name, 'stemwork.step.attempt': attempts }
    const order = { name: `step ${name}`, kind: 'internal', parent: this.#run ?? null, startedAt, attributes } as const
    const cause = error ? new StemworkError(error.code as ErrorCode, error.message) : undefined
    this.#tracing.begin(order).end(cause)
  }

  /** For steps that are not kept: each try still has its span. */
  readonly unkeptSteps: RunSteps = {
    save: async (step) => {
      this.ended(step)
      return step.files
    },
    finished: async () => undefined,
  }

  /**
   * Records the run, with a span for each stage. A span begins with the stage's first message, because stages run in
   * another process.
   */
  run<Result>(
    work: (trace: TraceContext | undefined, onStage: (stage: string) => void) => Promise<Result>,
  ): Promise<Result> {
    return this.step('run', async ({ context }) => {
      this.#run = context
      let name: string | undefined
      let span: Span | undefined
      const onStage = (stage: string) => {
        if (stage === name) return
        span?.end()
        name = stage
        const attributes = { 'stemwork.stage': stage }
        span = this.#tracing.begin({ name: `stage ${stage}`, kind: 'internal', parent: context ?? null, attributes })
      }
      try {
        const result = await work(context, onStage)
        span?.end()
        return result
      } catch (error) {
        span?.end(error)
        throw error
      }
    })
  }
}
