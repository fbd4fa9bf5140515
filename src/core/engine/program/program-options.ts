import type { StageContext } from '../workflow/workflow.js'
import type { ProgramProgress } from './progress-lines.js'

/** A rule that matches a failed program: by text at the end of its stderr, exit code, or signal that ended it. */
export type ProgramFailure = RegExp | number | NodeJS.Signals

export interface ProgramOptions<
  Params = Record<string, unknown>,
  Input extends string = string,
  Output extends string = string,
> {
  /** Arguments, passed one by one, without a shell. Required for a stage; `run` may get others. */
  args?: readonly string[] | ((context: StageContext<Params, Input, Output>) => readonly string[])
  /** Absolute path of the program. Default: found on the PATH by its name. */
  path?: string
  /** Name and weight as a stage. Default: the name of the program, and 1. */
  stage?: { name?: string; weight?: number }
  /** How the program reports progress. Default: not at all. */
  progress?: ProgramProgress
  /**
   * Protocol with the program, as used by the helper of `clients/python`: the job as a JSON file named by STEMWORK_JOB,
   * and progress, details, checkpoints and failures as lines of JSON on stdout. Default: none.
   */
  protocol?: 'stemwork'
  /** Longest run, in milliseconds; then the job fails with `TIMEOUT`. Default: the job's limit. */
  timeoutMs?: number
  /** Most resident memory of the program and its descendants, in MiB (Linux). Default: no limit. */
  memoryMb?: number
  /** Most data that it may write into the run's folder, in MiB. Default: 20,480. */
  outputMb?: number
  /** Environment beside PATH, LANG, and HOME, TMPDIR, TEMP and TMP (the run's folder). Nothing else is the host's. */
  env?: Readonly<Record<string, string>>
  /** Failures caused by the client's file: the job ends with `BAD_INPUT` and is not retried. */
  badInput?: ProgramFailure | readonly ProgramFailure[]
  /** Failures of the service that another attempt would repeat. Default: every other failure is retried. */
  permanent?: ProgramFailure | readonly ProgramFailure[]
}

export interface ProgramResult {
  /** The first MiB of the program's standard output. */
  stdout: string
}

/** Context that a program needs from the stage or step that runs it; with `protocol`, also the job for the program. */
export interface ProgramContext extends Pick<StageContext, 'directory' | 'signal' | 'progress'> {
  jobId?: string
  params?: unknown
  inputs?: unknown
  outputs?: readonly string[]
  checkpoint?: StageContext['checkpoint']
  outputPath?(this: void, name: string): string
  detail?(this: void, name: string, value: unknown): void
}
