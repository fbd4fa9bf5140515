import { rename, rm } from 'node:fs/promises'
import type { OutputFormat } from '../encode/output-format.js'
import type { AudioEncoder } from '../encode/audio-encoder.js'
import { openEncoder } from '../encode/encoder.js'
import type { StemName, Stems } from '../stems.js'

interface StemFile {
  stem: StemName
  path: string
  encoder: AudioEncoder
}

/** The files of a separation. They get their final names when all are complete; before that, names end in `.part`. */
export class StemFiles {
  readonly #files: readonly StemFile[]

  private constructor(files: readonly StemFile[]) {
    this.#files = files
  }

  static async open(
    paths: Partial<Record<StemName, string>>,
    sampleRate: number,
    format: OutputFormat,
  ): Promise<StemFiles> {
    const files: StemFile[] = []
    try {
      for (const [stem, path] of Object.entries(paths) as [StemName, string][]) {
        files.push({ stem, path, encoder: await openEncoder(`${path}.part`, { sampleRate, channels: 2, format }) })
      }
    } catch (error) {
      await new StemFiles(files).discard()
      throw error
    }
    return new StemFiles(files)
  }

  async write(audio: Stems): Promise<void> {
    await Promise.all(this.#files.map(({ stem, encoder }) => encoder.write(audio[stem] ?? [])))
  }

  /** Completes the files. Returns how many samples were clipped to the integer range. */
  async publish(): Promise<{ clippedSamples: number }> {
    const written = await Promise.all(this.#files.map(({ encoder }) => encoder.close()))
    for (const { path } of this.#files) await rename(`${path}.part`, path)
    return { clippedSamples: written.reduce((sum, { clippedSamples }) => sum + clippedSamples, 0) }
  }

  /** Removes the unfinished files, also after a `publish` that failed half-way. */
  async discard(): Promise<void> {
    for (const { path, encoder } of this.#files) {
      await encoder.abandon().catch(() => undefined)
      await rm(`${path}.part`, { force: true })
    }
  }
}
