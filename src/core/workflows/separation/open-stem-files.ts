import { rename, rm } from 'node:fs/promises'
import type { EncoderState } from '../../media/encode/audio-encoder.js'
import { openEncoder } from '../../media/encode/encoder.js'
import { formatTable, type OutputFormat } from '../../media/encode/output-format.js'
import { openThreadedEncoder } from '../../media/encode/threaded-encoder.js'
import { openGrowingPeaks } from '../../media/pictures/growing-peaks.js'
import type { AudioTags } from '../../media/tags/audio-tags.js'
import { stemEntries, type StemName } from '../../models/stems.js'
import { type StemFile, StemFiles } from './stem-files.js'

export interface StemFilesOptions {
  sampleRate: number
  format: OutputFormat
  tags?: (stem: StemName) => AudioTags
  /** Keeps peaks beside the unfinished files, for tracks of about this many samples; 0: of unknown length. */
  growingPeaks?: { sampleCount: number }
  /** Restores an unfinished file to `path`, and its peaks, with the state of its encoder; `undefined`: a new file. */
  restore?: (stem: StemName, path: string, peaksPath: string) => Promise<EncoderState | undefined>
}

/** Opens local files. The names of unfinished files end in `.part`. */
export async function openStemFiles(
  paths: Partial<Record<StemName, string>>,
  { sampleRate, format, tags, growingPeaks, restore }: StemFilesOptions,
): Promise<StemFiles> {
  // Packing samples takes no longer than handing them to another thread.
  const open = formatTable[format].isCompressed ? openThreadedEncoder : openEncoder
  return await StemFiles.open(
    stemEntries(paths).map(async ([stem, name]): Promise<StemFile> => {
      const path = `${name}.part`
      const peaksPath = `${path}.peaks`
      const from = await restore?.(stem, path, peaksPath)
      const encoder = await open(path, { sampleRate, channels: 2, format, tags: tags?.(stem), from })
      return {
        stem,
        path,
        encoder: growingPeaks
          ? await openGrowingPeaks(encoder, peaksPath, { ...growingPeaks, sampleRate, from: from?.peaks })
          : encoder,
        publish: () => rename(path, name),
        remove: () => rm(path, { force: true }),
      }
    }),
  )
}
