import type { StageContext } from './stage.js'

/** A file that a step makes. The files of finished steps are kept until the job has ended. */
export interface StepFile {
  readonly name: string
  /** Path at which its step writes the file and other steps read it. Differs in each attempt. */
  readonly path: string
}

/** The argument of a step's work. */
export interface StepContext extends Pick<
  StageContext,
  'jobId' | 'directory' | 'limits' | 'signal' | 'trace' | 'progress' | 'detail'
> {
  /** Names a file of the step; write it to its `path` and return it. */
  file(this: void, name: string): StepFile
}

export interface StepOptions {
  /** Tries in one attempt of the job. Default: 1; its next attempt tries the step again anyway. */
  maxAttempts?: number
  /** Wait before the second try, in milliseconds; doubles with each one. Default: 1,000. */
  retryDelayMs?: number
  /** Longest try, in milliseconds. Default: the job's limit. */
  timeoutMs?: number
  /**
   * Labels that the worker must have, such as `gpu`, in addition to those that the workflow needs. On a worker without
   * them the run is suspended, and continues on one that has them; finished steps are kept.
   */
  needs?: readonly string[]
  /** Share of the job's progress, 0 to 1. Default: 0.1. */
  share?: number
}

export type Work<Value> = (context: StepContext) => Promise<Value>

/** A step's value after JSON: files are still files, but a `Date` has become its text, and `undefined` alone `null`. */
export type Kept<Value> = void extends Value
  ? Value
  : Value extends string | number | boolean | null | StepFile
    ? Value
    : Value extends { toJSON(...given: never): infer Json }
      ? Kept<Json>
      : Value extends bigint
        ? never
        : Value extends Lost
          ? null
          : Value extends readonly unknown[]
            ? // The result of `match()`, too, is a plain array then.
              number extends Value['length']
              ? Kept<Value[number]>[]
              : { [Index in keyof Value]: Kept<Value[Index]> }
            : {
                [Name in keyof Value as Value[Name] extends Lost ? never : Name]:
                  | Kept<Exclude<Value[Name], undefined>>
                  | Extract<Value[Name], undefined>
              }

/** What JSON leaves out of an object, and replaces by `null` elsewhere. */
type Lost = undefined | symbol | ((...given: never) => unknown)

/**
 * The durable parts of a run. A finished step never runs again: after a crash, a shutdown or a failure the function
 * runs from its beginning, and finished steps return their earlier results. So the code between steps must be quick and
 * deterministic; anything that varies, such as the time, belongs in a step.
 */
export interface Steps {
  /**
   * Does the work, unless it is finished, keeps its result as JSON, which may contain its files, and returns that JSON.
   * Each name must be used only once.
   */
  run<Value>(name: string, work: Work<Value>, options?: StepOptions): Promise<Kept<Value>>
  /** Runs steps concurrently. Resolves with their values by name. */
  all<Values extends Record<string, unknown>>(
    works: { [Name in keyof Values]: Work<Values[Name]> },
    options?: StepOptions,
  ): Promise<{ [Name in keyof Values]: Kept<Values[Name]> }>
  /** Waits any time, without occupying a slot or a process. */
  sleep(name: string, milliseconds: number): Promise<void>
  /** Waits likewise for `engine.sendEvent(jobId, name, value)`. `undefined`: no event came in time. */
  waitFor<Value = unknown>(name: string, options: { timeoutMs: number }): Promise<Value | undefined>
}

/** The argument of a workflow's function. */
export interface RunContext<Params = Record<string, unknown>, Input extends string = string> extends Pick<
  StageContext<Params, Input>,
  'jobId' | 'params' | 'inputs' | 'limits' | 'signal' | 'trace' | 'detail'
> {
  readonly step: Steps
  /** Sets the output's file name for downloads, as in a stage. */
  downloadName(output: string, fileName: string): void
}
