import type { TraceContext } from '../job/trace-context.js'

/** A file that is passed between processes by its path. */
export interface InputFile {
  path: string
  bytes: number
  /** The file's original name with its extension, if known. It may contain any text. */
  name?: string
}

/** One run of a workflow, as plain data that may be sent to another process. */
export interface WorkOrder {
  jobId: string
  workflow: string
  /**
   * ES module (a `file:` URL) whose default export makes the workflow from `settings`; null: only the host's process
   * knows it.
   */
  module: string | null
  settings: unknown
  params: Record<string, unknown>
  /** Input files by the name of the param that named them. */
  inputs: Record<string, InputFile>
  /** An empty folder for this run, which leaves its outputs there. Removed by the caller. */
  directory: string
  limits: WorkLimits
  /** Parts that earlier attempts kept, and how much and how often this one may keep. Absent: keep nothing. */
  checkpoint?: { parts: KeptPart[]; afterMs: number; everyMs: number; maxBytes: number }
  /** The steps that earlier runs kept. Their values and files are fetched on demand. */
  steps?: StepState[]
  /** Labels that the worker offers to steps of the run. Absent: any. */
  offers?: string[]
  /** Position of the run in a trace. */
  trace?: TraceContext
}

export interface WorkLimits {
  maxAudioSeconds: number
}

export interface OutputFile {
  path: string
  bytes: number
  contentType: string
  fileName: string
  /** The file name offered for downloads instead of `fileName`. */
  downloadName?: string
}

export interface WorkResult {
  outputs: Record<string, OutputFile>
  details: Record<string, unknown>
  /** The steps that a suspended run waits for: it is run again when one of them ends. */
  waitsFor?: string[]
  /** With `waitsFor`: labels that the next worker of this run must have, because a step needs them. */
  needs?: string[]
}

/** State of a step. */
export interface StepState {
  name: string
  /** Version of its work; results of another version are ignored. Empty: none, or an event that arrived early. */
  version: string
  state: 'done' | 'failed' | 'waiting'
  startedAt: number
  endedAt: number | null
  attempts: number
  until: number | null
  error: { code: string; message: string } | null
}

/** A step with its return value and files. */
export interface KeptStep extends StepState {
  /** JSON. */
  value: unknown
  /** Local files by name. */
  files: Record<string, InputFile>
}

/** Return value and files of a finished step. */
export type StepResult = Pick<KeptStep, 'value' | 'files'>

/** Storage for the steps of a run. */
export interface RunSteps {
  /**
   * Keeps a step with its files. Once this resolves, a finished step never runs again.
   *
   * @returns the new locations of its files
   * @throws StemworkError if the step could not be kept: the run must end
   */
  save(step: KeptStep): Promise<Record<string, InputFile>>
  /** Reads the result of a finished step; `undefined`: it no longer exists, and the step must run again. */
  finished(name: string): Promise<StepResult | undefined>
}

export interface WorkProgress {
  stage: string
  /** 0..1 over all stages. */
  progress: number
}

export interface RunOptions {
  /** Ends the run at once, by force if necessary; the run rejects with its reason. */
  signal: AbortSignal
  onProgress(progress: WorkProgress): void
  /**
   * Called with the processor time that the run has used so far, if it has its own process: with each progress, and at
   * its end, however it ends.
   */
  onUse?(processorSeconds: number): void
  /** Stores the work that stages keep for a later attempt. Absent: nothing is kept. */
  checkpoint?: RunCheckpoint
  /** Keeps the steps of a workflow with steps. */
  steps?: RunSteps
}

/** A part of a checkpoint, on local disk. */
export interface KeptPart {
  path: string
  bytes: number
}

export interface RunCheckpoint {
  /**
   * Stores the part with this number, a file in the order's folder (`checkpoint-<part>`). Resolves when the next part
   * may follow; never rejects.
   */
  store(part: number): Promise<void>
  /** Says that no further part follows: the checkpoint or the disk is full, or the stage has stopped keeping. */
  stopped(): void
  /** Fires when the run is about to be handed back: work not kept by then is repeated. */
  readonly handBack: AbortSignal
}

/** Runs work orders; a workflow's code is run in no other way. */
export interface Runner {
  /**
   * Runs the order to its end, as soon as a slot is free.
   *
   * @throws StemworkError for what the workflow reports (`BAD_INPUT` is not retried); a retryable `INTERNAL_ERROR` with
   * reason `worker_lost` when the process that ran it died. The signal's reason.
   */
  run(order: WorkOrder, options: RunOptions): Promise<WorkResult>
  /**
   * Starts a process as `run` would, and lets the workflow load its dependencies (`prepare` of its definition), so that
   * missing parts show before a job runs. Cheap to repeat. Absent in runners without processes. Returns the result of
   * the definition's `prepare`.
   *
   * @throws StemworkError that keeps jobs from running, with the remedy: `RUNNER_UNAVAILABLE` if the process cannot
   * start, otherwise the workflow's error. The signal's reason.
   */
  prepare?(
    workflow: Pick<WorkOrder, 'workflow' | 'module' | 'settings'>,
    options: { signal: AbortSignal },
  ): Promise<Record<string, unknown>>
  /** For health checks: all slots, those in use, and how often a process was lost. */
  status(): { slots: number; busy: number; restarts: number }
  /** Ends idle and running processes. Runs in progress are aborted, later ones refused, with `SHUTTING_DOWN`. */
  close(): Promise<void>
}
