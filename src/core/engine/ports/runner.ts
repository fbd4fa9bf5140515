import type { TraceContext } from '../job/trace-context.js'

/** A file that crosses the process boundary by its path. */
export interface InputFile {
  path: string
  bytes: number
  /** What the file is called where it comes from, with its extension, if that is known. Any text may be in it. */
  name?: string
}

/** One run of a workflow, in plain data: it may be sent to another process. */
export interface WorkOrder {
  jobId: string
  workflow: string
  /** ES module (a `file:` URL) whose default export makes the workflow from `settings`; null: only the host's process knows it. */
  module: string | null
  settings: unknown
  params: Record<string, unknown>
  /** Input files by the name of the param that named them. */
  inputs: Record<string, InputFile>
  /** An empty folder of this run's own; outputs are left in it. Removed by the caller. */
  directory: string
  limits: WorkLimits
  /** What earlier attempts kept, and how much and how often this one may keep. Absent: nothing is kept. */
  checkpoint?: { parts: KeptPart[]; afterMs: number; everyMs: number; maxBytes: number }
  /** Where the run is in a trace. */
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
  /** What a downloader is offered instead of `fileName`. */
  downloadName?: string
}

export interface WorkResult {
  outputs: Record<string, OutputFile>
  details: Record<string, unknown>
}

export interface WorkProgress {
  stage: string
  /** 0..1 over all stages. */
  progress: number
}

export interface RunOptions {
  /** Ends the run at once, by force if need be; the run rejects with its reason. */
  signal: AbortSignal
  onProgress(progress: WorkProgress): void
  /** Takes what the stages keep for a later attempt. Absent: nothing is kept. */
  checkpoint?: RunCheckpoint
}

/** A part of a checkpoint, on local disk. */
export interface KeptPart {
  path: string
  bytes: number
}

export interface RunCheckpoint {
  /** Stores the file of this number in the order's folder (`checkpoint-<part>`). Resolves when the next part may come; never rejects. */
  store(part: number): Promise<void>
  /** Fires when the run is about to be handed back: what has not been kept by then is done again. */
  readonly handBack: AbortSignal
}

/** Runs work orders: the only door through which a workflow's code is reached. */
export interface Runner {
  /**
   * Runs the order to its end, as soon as a slot is free.
   *
   * @throws StemworkError for what the workflow reports (`BAD_INPUT` is not retried); a retryable `INTERNAL_ERROR` with reason
   * `worker_lost` when the process that ran it died. The signal's reason.
   */
  run(order: WorkOrder, options: RunOptions): Promise<WorkResult>
  /**
   * Starts a process as `run` would, and lets the workflow load what it needs (`prepare` of its definition): what is missing shows
   * before a job runs. Cheap when it is done again. Absent in runners without processes.
   *
   * @throws StemworkError what keeps jobs from running, with the remedy: `RUNNER_UNAVAILABLE` if the process cannot start, else
   * what the workflow throws. The signal's reason.
   */
  prepare?(
    workflow: Pick<WorkOrder, 'workflow' | 'module' | 'settings'>,
    options: { signal: AbortSignal },
  ): Promise<void>
  /** For health checks: slots and whether each has a live process. */
  status(): { slots: number; busy: number; restarts: number }
  /** Ends idle and running processes. Runs in progress are aborted, later ones refused, with `SHUTTING_DOWN`. */
  close(): Promise<void>
}
