import { rename, rm } from 'node:fs/promises'
import type { GrowingFile } from './checkpoint/track-checkpoint.js'
import { formatTable, type OutputFormat } from '../../media/encode/output-format.js'
import type { AudioEncoder, EncoderState } from '../../media/encode/audio-encoder.js'
import { openEncoder } from '../../media/encode/encoder.js'
import { openThreadedEncoder } from '../../media/encode/threaded-encoder.js'
import type { StemName, Stems } from '../../models/stems.js'
import type { AudioTags } from '../../media/tags/audio-tags.js'

interface StemFile {
  stem: StemName
  path: string
  encoder: AudioEncoder
}

export interface StemFilesOptions {
  sampleRate: number
  format: OutputFormat
  tags?: (stem: StemName) => AudioTags
  /** Restores an unfinished file to `path`, with the state of its encoder; `undefined`: a new file. */
  restore?: (stem: StemName, path: string) => Promise<EncoderState | undefined>
}

/** The files of a separation. They get their final names when all are complete; before that, names end in `.part`. */
export class StemFiles {
  readonly #files: readonly StemFile[]

  private constructor(files: readonly StemFile[]) {
    this.#files = files
  }

  static async open(
    paths: Partial<Record<StemName, string>>,
    { sampleRate, format, tags, restore }: StemFilesOptions,
  ): Promise<StemFiles> {
    // Packing samples takes no longer than handing them to another thread.
    const open = formatTable[format].isCompressed ? openThreadedEncoder : openEncoder
    const opening = (Object.entries(paths) as [StemName, string][]).map(async ([stem, path]): Promise<StemFile> => ({
      stem,
      path,
      encoder: await open(`${path}.part`, {
        sampleRate,
        channels: 2,
        format,
        tags: tags?.(stem),
        from: await restore?.(stem, `${path}.part`),
      }),
    }))
    try {
      return new StemFiles(await Promise.all(opening))
    } catch (error) {
      for (const opened of await Promise.allSettled(opening))
        if (opened.status === 'fulfilled') await new StemFiles([opened.value]).discard()
      throw error
    }
  }

  async write(audio: Stems): Promise<void> {
    await Promise.all(this.#files.map(({ stem, encoder }) => encoder.write(audio[stem] ?? [])))
  }

  /** The unfinished files, where their encoders can be resumed. */
  growing(): GrowingFile[] {
    return this.#files.flatMap(({ stem, path, encoder }) => {
      const state = encoder.state?.()
      return state ? [{ stem, path: `${path}.part`, ...state }] : []
    })
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
