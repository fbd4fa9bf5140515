import { text } from 'node:stream/consumers'
import { StemworkError } from '../errors.js'
import { Shares } from '../limits/shares.js'
import type { AudioPeaks } from '../ports/audio-peaks.js'
import type { BlobStore } from '../ports/blob-store.js'
import { peaksKey } from '../job/blob-keys.js'
import type { JobOutput, JobRecord } from '../job/job.js'
import { untilAborted } from '../workflow/until-aborted.js'

/** Measurements at a time, one of an application. Each is a child process that decodes a file. */
const measuredAtOnce = 2
/** Further ones that an application may wait for: more than any one job has outputs. */
const waitingPerApplication = 20

interface Measurement {
  peaks: Promise<string | undefined>
  readers: number
  /** Ends it when nobody waits for it any more. */
  stop: AbortController
}

/** Peaks of result files: measured on the first request, then stored next to the file and removed with it. */
export class ResultPeaks {
  readonly #blobs: BlobStore
  readonly #measure: AudioPeaks | undefined
  readonly #slots = new Shares({ total: measuredAtOnce, perApplication: 1, waitingPerApplication })
  /** By blob key, so that several readers share one. */
  readonly #running = new Map<string, Measurement>()

  constructor(blobs: BlobStore, measure: AudioPeaks | undefined) {
    this.#blobs = blobs
    this.#measure = measure
  }

  /**
   * @throws StemworkError `BAD_INPUT` for a file that is not audio; `RATE_LIMITED` if the application waits for too
   * many; the signal's reason.
   */
  async of(job: JobRecord, name: string, signal?: AbortSignal): Promise<string | undefined> {
    const output = job.outputs && Object.hasOwn(job.outputs, name) ? job.outputs[name] : undefined
    if (!output || output.copied || job.expired) return undefined
    const key = peaksKey(output.key)
    const kept = await this.#blobs.get(key, { signal, app: job.app })
    if (kept) return text(kept.body)
    signal?.throwIfAborted()
    const running = this.#running.get(key) ?? this.#begin(job.app, output, key)
    running.readers++
    try {
      return await untilAborted(running.peaks, signal)
    } finally {
      if (--running.readers === 0) {
        this.#forget(key, running)
        running.stop.abort()
      }
    }
  }

  #begin(app: string, output: JobOutput, key: string): Measurement {
    const stop = new AbortController()
    const { signal } = stop
    const make = () => this.#make(output, key, { app, signal })
    const peaks = this.#slots.use(app, make, { signal, refusal: tooManyWaiting })
    const measurement = { peaks, readers: 0, stop }
    this.#running.set(key, measurement)
    // Readers that have left do not see its end.
    const forget = () => this.#forget(key, measurement)
    peaks.then(forget, forget)
    return measurement
  }

  #forget(key: string, measurement: Measurement): void {
    if (this.#running.get(key) === measurement) this.#running.delete(key)
  }

  async #make(
    output: JobOutput,
    key: string,
    { app, signal }: { app: string; signal: AbortSignal },
  ): Promise<string | undefined> {
    const file = this.#measure && (await this.#blobs.get(output.key, { signal, app }))
    if (!file || !this.#measure) return undefined
    const json = await this.#measure({ body: file.body, fileName: output.fileName }, signal)
    await this.#blobs.put(key, json, { contentType: 'application/json', app })
    return json
  }
}

function tooManyWaiting(): StemworkError {
  return new StemworkError(
    'RATE_LIMITED',
    `Peaks are measured one file after another, and ${waitingPerApplication} of an application may wait. Ask for ` +
      'these again when others have been answered.',
    { retryable: true },
  )
}
