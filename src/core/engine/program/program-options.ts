import type { StageContext } from '../workflow/workflow.js'
import type { ProgramProgress } from './progress-lines.js'

/** What a program's failure looks like: text in the end of its stderr, its exit code, or the signal that ended it. */
export type ProgramFailure = RegExp | number | NodeJS.Signals

export interface ProgramOptions<
  Params = Record<string, unknown>,
  Input extends string = string,
  Output extends string = string,
> {
  /** Its arguments, passed one by one, without a shell. Required in a stage; `run` may get its own. */
  args?: readonly string[] | ((context: StageContext<Params, Input, Output>) => readonly string[])
  /** Where it is, as an absolute path. Default: found on the PATH by its name. */
  path?: string
  /** Name and weight as a stage. Default: the name of the program, and 1. */
  stage?: { name?: string; weight?: number }
  /** How it reports progress. Default: not at all. */
  progress?: ProgramProgress
  /**
   * What the helper of `clients/python` speaks: the job as a JSON file named by STEMWORK_JOB, and progress, details,
   * checkpoints and failures as lines of JSON on stdout. Default: none.
   */
  protocol?: 'stemwork'
  /** Its longest run, in milliseconds; then the job fails with `TIMEOUT`. Default: that of the job. */
  timeoutMs?: number
  /** Most resident memory of it and all that it starts, in MiB (Linux). Default: no limit. */
  memoryMb?: number
  /** Most that it may write into the run's folder, in MiB. Default: 20,480. */
  outputMb?: number
  /** Its environment, beside PATH, LANG, HOME and TMPDIR (the run's folder). Nothing else is the host's. */
  env?: Readonly<Record<string, string>>
  /** Failures that are the client's file's fault: the job ends with `BAD_INPUT` and is not tried again. */
  badInput?: ProgramFailure | readonly ProgramFailure[]
  /** Failures of the service that another attempt would repeat. Default: every other failure is retried. */
  permanent?: ProgramFailure | readonly ProgramFailure[]
}

export interface ProgramResult {
  /** The first MiB of its standard output. */
  stdout: string
}

/** What a program needs of the stage or step that runs it; with `protocol`, also what it is told. */
export interface ProgramContext extends Pick<StageContext, 'directory' | 'signal' | 'progress'> {
  jobId?: string
  params?: unknown
  inputs?: unknown
  outputs?: readonly string[]
  checkpoint?: StageContext['checkpoint']
  outputPath?(name: string): string
  detail?(name: string, value: unknown): void
}
