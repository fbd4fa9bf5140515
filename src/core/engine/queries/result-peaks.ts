import { text } from 'node:stream/consumers'
import { StemworkError } from '../errors.js'
import { Shares } from '../limits/shares.js'
import type { AudioPeaks } from '../ports/audio-peaks.js'
import type { BlobStore } from '../ports/blob-store.js'
import { peaksKey } from '../job/blob-keys.js'
import type { JobOutput, JobRecord } from '../job/job.js'
import { untilAborted } from '../workflow/until-aborted.js'

/** Measurements at a time, one for each application. Each is a child process that decodes a file. */
const measuredAtOnce = 2
/** Further measurements that an application may wait for: more than any job has outputs. */
const waitingPerApplication = 20

interface Measurement {
  peaks: Promise<string | undefined>
  readers: number
  /** Ends the measurement when its last reader has left. */
  stop: AbortController
}

/** Peaks of result files: measured on the first request, then stored next to the file and removed with it. */
export function resultPeaks(blobs: BlobStore, measure: AudioPeaks | undefined) {
  const slots = new Shares({ total: measuredAtOnce, perApplication: 1, waitingPerApplication })
  /** By blob key, so that several readers share a measurement. */
  const running = new Map<string, Measurement>()

  const forget = (key: string, measurement: Measurement) => {
    if (running.get(key) === measurement) running.delete(key)
  }

  const make = async (output: JobOutput, key: string, { app, signal }: { app: string; signal: AbortSignal }) => {
    const file = measure && (await blobs.get(output.key, { signal, app }))
    if (!file || !measure) return undefined
    const json = await measure({ body: file.body, fileName: output.fileName }, signal)
    await blobs.put(key, json, { contentType: 'application/json', app })
    return json
  }

  const begin = (app: string, output: JobOutput, key: string): Measurement => {
    const stop = new AbortController()
    const { signal } = stop
    const peaks = slots.use(app, () => make(output, key, { app, signal }), { signal, refusal: tooManyWaiting })
    const measurement = { peaks, readers: 0, stop }
    running.set(key, measurement)
    // Also handles a rejection that no reader awaits any more.
    const end = () => forget(key, measurement)
    peaks.then(end, end)
    return measurement
  }

  /**
   * @throws StemworkError `BAD_INPUT` for a file that is not audio; `RATE_LIMITED` if the application already waits for
   * too many; the signal's reason.
   */
  return async (job: JobRecord, name: string, signal?: AbortSignal): Promise<string | undefined> => {
    const output = job.outputs && Object.hasOwn(job.outputs, name) ? job.outputs[name] : undefined
    if (!output || output.copied || job.expired) return undefined
    const key = peaksKey(output.key)
    const kept = await blobs.get(key, { signal, app: job.app })
    if (kept) return text(kept.body)
    signal?.throwIfAborted()
    const measurement = running.get(key) ?? begin(job.app, output, key)
    measurement.readers++
    try {
      return await untilAborted(measurement.peaks, signal)
    } finally {
      if (--measurement.readers === 0) {
        forget(key, measurement)
        measurement.stop.abort()
      }
    }
  }
}

function tooManyWaiting(): StemworkError {
  return new StemworkError(
    'RATE_LIMITED',
    `Peaks are measured one file at a time, and ${waitingPerApplication} requests of an application may wait. Send ` +
      'this one again when others have been answered.',
    { retryable: true },
  )
}
