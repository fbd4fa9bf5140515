import type { StageContext } from './stage.js'

/** A file that a step makes. Finished steps keep theirs until the job has ended. */
export interface StepFile {
  readonly name: string
  /** Where its step writes it, and others read it. Another attempt has another path. */
  readonly path: string
}

/** What a step receives. */
export interface StepContext extends Pick<
  StageContext,
  'jobId' | 'directory' | 'limits' | 'signal' | 'trace' | 'progress' | 'detail'
> {
  /** A file of the step, to be written at its `path` and returned. */
  file(name: string): StepFile
}

export interface StepOptions {
  /** Tries in a row, before the step fails. Default: 1; the job's next attempt tries it again anyway. */
  maxAttempts?: number
  /** Wait before the second try, in milliseconds; doubles with each one. Default: 1,000. */
  retryDelayMs?: number
  /** Longest try, in milliseconds. Default: that of the job. */
  timeoutMs?: number
  /**
   * Labels that the worker must have, such as `gpu`, besides those that the workflow needs. On any other worker the run
   * ends, and continues on one that has them; finished steps are kept.
   */
  needs?: readonly string[]
  /** Its share of the job's progress, 0 to 1. Default: 0.1. */
  share?: number
}

export type Work<Value> = (context: StepContext) => Promise<Value>

/**
 * The durable parts of a run. A step that is finished never runs again: after a crash, a shutdown or a failure the
 * function runs from its beginning, and finished steps return what they returned before. So what is between them must
 * be quick and give the same again; whatever differs, such as the time, belongs in a step.
 */
export interface Steps {
  /**
   * Does the work, unless it is finished, and keeps what it returns: JSON, which may contain its files. Each name is
   * used once.
   */
  run<Value>(name: string, work: Work<Value>, options?: StepOptions): Promise<Value>
  /** Steps side by side. Resolves with their values by name. */
  all<Values extends Record<string, unknown>>(
    works: { [Name in keyof Values]: Work<Values[Name]> },
    options?: StepOptions,
  ): Promise<Values>
  /** Waits, without a slot or a process, however long. */
  sleep(name: string, milliseconds: number): Promise<void>
  /** Waits likewise for `engine.sendEvent(jobId, name, value)`. `undefined`: it has not come in time. */
  waitFor<Value = unknown>(name: string, options: { timeoutMs: number }): Promise<Value | undefined>
}

/** What the function of a workflow receives. */
export interface RunContext<Params = Record<string, unknown>, Input extends string = string> extends Pick<
  StageContext<Params, Input>,
  'jobId' | 'params' | 'inputs' | 'limits' | 'signal' | 'trace' | 'detail'
> {
  readonly step: Steps
  /** Sets the output's file name for downloads, as in a stage. */
  downloadName(output: string, fileName: string): void
}
