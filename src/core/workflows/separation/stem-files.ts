import type { AudioEncoder } from '../../media/encode/audio-encoder.js'
import type { StemName, Stems } from '../../models/stems.js'
import type { GrowingFile } from './checkpoint/track-checkpoint.js'

/** A file that gets its final name when it is complete. */
export interface StemFile {
  stem: StemName
  /** Of the unfinished file. */
  path: string
  encoder: AudioEncoder
  /** Gives the complete file its name. */
  publish(): Promise<void>
  /** Removes the unfinished file. */
  remove(): Promise<void>
}

/** The files of a separation. They get their names when all are complete. */
export class StemFiles {
  readonly #files: readonly StemFile[]

  private constructor(files: readonly StemFile[]) {
    this.#files = files
  }

  /** @param opening the files; if one cannot be opened, the others are removed */
  static async open(opening: readonly Promise<StemFile>[]): Promise<StemFiles> {
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

  /** The unfinished files whose encoders can be resumed. */
  growing(): GrowingFile[] {
    return this.#files.flatMap(({ stem, path, encoder }) => {
      const state = encoder.state?.()
      return state ? [{ stem, path, ...state }] : []
    })
  }

  /** Completes the files. Returns the number of samples that were clipped to the integer range. */
  async publish(): Promise<{ clippedSamples: number }> {
    const written = await Promise.all(this.#files.map(({ encoder }) => encoder.close()))
    for (const file of this.#files) await file.publish()
    return { clippedSamples: written.reduce((sum, { clippedSamples }) => sum + clippedSamples, 0) }
  }

  /** Removes the unfinished files, also after a `publish` that failed half-way. */
  async discard(): Promise<void> {
    for (const file of this.#files) {
      await file.encoder.abandon().catch(() => undefined)
      await file.remove()
    }
  }
}
