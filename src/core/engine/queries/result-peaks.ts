import type { AudioPeaks } from '../ports/audio-peaks.js'
import type { BlobStore } from '../ports/blob-store.js'
import { peaksKey } from '../job/blob-keys.js'
import type { JobOutput, JobRecord } from '../job/job.js'

/** Peaks of result files: measured on the first request, then stored next to the file and removed with it. */
export class ResultPeaks {
  readonly #blobs: BlobStore
  readonly #measure: AudioPeaks | undefined
  /** Measurements in progress by blob key, so that several readers share one. */
  readonly #running = new Map<string, Promise<string | undefined>>()

  constructor(blobs: BlobStore, measure: AudioPeaks | undefined) {
    this.#blobs = blobs
    this.#measure = measure
  }

  /** @throws StemworkError `BAD_INPUT` for a file that is not audio; the signal's reason. */
  async of(job: JobRecord, name: string, signal?: AbortSignal): Promise<string | undefined> {
    const output = job.outputs && Object.hasOwn(job.outputs, name) ? job.outputs[name] : undefined
    if (!output || output.copied || job.expired) return undefined
    const key = peaksKey(output.key)
    const kept = await this.#blobs.get(key, { signal })
    if (kept) return textOf(kept.body)
    let running = this.#running.get(key)
    if (!running) {
      // Not aborted by the first reader's signal: others may wait for it, and later visits will need it.
      running = this.#make(output, key).finally(() => this.#running.delete(key))
      this.#running.set(key, running)
    }
    return running
  }

  async #make(output: JobOutput, key: string): Promise<string | undefined> {
    const file = this.#measure && (await this.#blobs.get(output.key))
    if (!file || !this.#measure) return undefined
    const json = await this.#measure({ body: file.body, fileName: output.fileName }, new AbortController().signal)
    await this.#blobs.put(key, bytesOf(json), { contentType: 'application/json' })
    return json
  }
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
