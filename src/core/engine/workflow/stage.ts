import type { TraceContext } from '../job/trace-context.js'
import type { InputFile, WorkLimits } from '../ports/runner.js'
import type { Checkpoint } from './checkpoint.js'

/** Input files by param name. The file of an optional param may be missing. */
export type InputFiles<Params, Input extends string> = {
  readonly [Name in Input]: Name extends keyof Params
    ? unknown extends Params[Name]
      ? InputFile
      : undefined extends Params[Name]
        ? InputFile | undefined
        : InputFile
    : InputFile
}

/** The argument of a stage. `Input` and `Output` are the names that the workflow declares. */
export interface StageContext<
  Params = Record<string, unknown>,
  Input extends string = string,
  Output extends string = string,
> {
  readonly jobId: string
  readonly params: Params
  /** Files already fetched to the local disk. */
  readonly inputs: InputFiles<Params, Input>
  /** Names of the outputs that the workflow declares for these params. */
  readonly outputs: readonly string[]
  /** Folder for intermediate files; removed after the run. */
  readonly directory: string
  readonly limits: WorkLimits
  /** Fires on cancel, delete, timeout, lost lease and shutdown. */
  readonly signal: AbortSignal
  /** Keeps finished work for the job's next attempt, in case this attempt is killed or handed back. */
  readonly checkpoint: Checkpoint
  /** The run's position in a trace, for stages that call other services or record their own spans. */
  readonly trace?: TraceContext
  /**
   * Path to which the stage writes the output. A stage that writes the file from start to end may name it `<path>.part`
   * until it is complete: the written bytes can then be read while the job runs.
   */
  outputPath(this: void, name: Output): string
  /**
   * Sets the output's file name for downloads; the default is its `fileName`. Control characters and path separators
   * are replaced.
   */
  downloadName(this: void, name: Output, fileName: string): void
  /** Reports the progress within this stage, 0..1. */
  progress(this: void, fraction: number): void
  /** Adds to the job's `details`. */
  detail(this: void, name: string, value: unknown): void
}

export interface Stage<
  Params = Record<string, unknown>,
  Input extends string = string,
  Output extends string = string,
> {
  name: string
  /** Share of the whole run's progress, relative to the other stages. Default: 1. */
  weight?: number
  /** The program that the stage runs (`program()`). */
  readonly program?: NeededProgram
  run(context: StageContext<Params, Input, Output>): Promise<unknown>
}

/** A program that a workflow starts. */
export interface NeededProgram {
  /** Name on the PATH. */
  readonly name: string
  /** Absolute path, if it is not on the PATH. */
  readonly path?: string
}
