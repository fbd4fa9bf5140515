import { type FileHandle, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Checkpoint, KeptPart } from '../../../engine/workflow/checkpoint.js'
import type { EncoderState, PeaksState } from '../../../media/encode/audio-encoder.js'
import type { KeptSegments } from '../pipeline/kept-segments.js'
import type { OverlapAddState } from '../pipeline/overlap-add.js'
import { type StemName, stemNames } from '../../../models/stems.js'
import {
  appendState,
  checkSpace,
  openPart,
  type PartWriter,
  planesSchema,
  readInto,
  readJson,
  readState,
  withFile,
} from './part-file.js'
import type { GrowingFile, TrackCheckpoint } from './track-checkpoint.js'

const count = z.number().int().nonnegative()

const rangeShape = { from: count, bytes: count, offset: count }

const indexSchema = z.object({
  format: z.literal(3),
  /** Identifies input, models, options and version: parts of other work are useless. */
  fingerprint: z.string(),
  /** Segments from the start of the track whose samples are in the files. */
  segments: count,
  /** The overlap-add after the last of them: a plane of weights, then the sums. */
  state: planesSchema,
  /** The bytes `from` to `bytes` of each file, which lie at `offset`, and those of its peaks. */
  files: z.array(
    z.object({
      stem: z.enum(stemNames),
      ...rangeShape,
      clippedSamples: count,
      peaks: z.object({ ...rangeShape, samples: count, lowest: z.number(), highest: z.number() }).optional(),
    }),
  ),
})
export type FilesIndex = z.infer<typeof indexSchema>

export interface FilesCheckpointOptions {
  checkpoint: Checkpoint
  /** The run's folder: parts are written there. */
  directory: string
  /**
   * Text that identifies the work: input, models, options and version. Only called if something is kept.
   */
  fingerprint(): Promise<string>
}

/** Files are copied in pieces of this size. */
const pieceBytes = 1024 ** 2

/**
 * The checkpoint of a separation in one pass to files whose encoders can resume: parts hold what the files grew by. The
 * next attempt joins the parts, continues the files and decodes the input from there: no kept work is done again.
 */
export class FilesCheckpoint implements TrackCheckpoint {
  readonly #options: FilesCheckpointOptions
  readonly #parts: { path: string; index: FilesIndex }[] = []
  #state: OverlapAddState | undefined
  #growing: () => readonly GrowingFile[] = () => []
  /** Bytes of each file and its peaks that are kept. */
  readonly #kept = new Map<StemName, { bytes: number; peaks: number }>()

  private constructor(options: FilesCheckpointOptions) {
    this.#options = options
  }

  /** Reads the parts that earlier attempts kept. If one is unreadable or belongs to other work, all are ignored. */
  static async open(options: FilesCheckpointOptions): Promise<FilesCheckpoint> {
    const opened = new FilesCheckpoint(options)
    try {
      for (const part of options.checkpoint.parts) await opened.#load(part)
      opened.#state = await opened.#readState()
      return opened
    } catch {
      options.checkpoint.restart()
      return new FilesCheckpoint(options)
    }
  }

  pass(): KeptSegments {
    return {
      count: this.#parts.at(-1)?.index.segments ?? 0,
      state: this.#state,
      consumed: (segment, state) => this.#keepIfDue(segment + 1, state),
    }
  }

  async restore(stem: StemName, path: string, peaksPath: string): Promise<EncoderState | undefined> {
    const kept = this.#parts.map(({ path: source, index }) => {
      const file = index.files.find((each) => each.stem === stem)
      if (!file) throw new Error(`the checkpoint holds nothing of ${stem}`)
      return { source, file }
    })
    const last = kept.at(-1)?.file
    if (!last) return undefined
    await joinRanges(
      path,
      kept.map(({ source, file }) => ({ source, ...file })),
    )
    if (last.peaks)
      await joinRanges(
        peaksPath,
        kept.flatMap(({ source, file }) => (file.peaks ? { source, ...file.peaks } : [])),
      )
    const { bytes, clippedSamples, peaks } = last
    return { bytes, clippedSamples, peaks: peaks && { ...peaks, path: peaksPath } }
  }

  follow(files: () => readonly GrowingFile[]): void {
    this.#growing = files
  }

  async close(): Promise<void> {}

  async #load({ path, bytes }: KeptPart): Promise<void> {
    const index = await readFilesIndex(path, bytes)
    if (index.fingerprint !== (await this.#options.fingerprint()))
      throw new Error('the checkpoint belongs to other work')
    for (const { stem, from, bytes, peaks } of index.files) {
      const kept = this.#keptOf(stem)
      if (from !== kept.bytes || (peaks?.from ?? 0) !== kept.peaks)
        throw new Error('the parts of the checkpoint do not join')
      this.#kept.set(stem, { bytes, peaks: peaks?.bytes ?? 0 })
    }
    this.#parts.push({ path, index })
  }

  async #readState(): Promise<OverlapAddState | undefined> {
    const last = this.#parts.at(-1)
    return last && (await withFile(last.path, 'r', (file) => readState(file, last.index.state)))
  }

  /** Keeping stops when the disk is full or nearly full. */
  async #keepIfDue(segments: number, state: () => OverlapAddState): Promise<void> {
    const { checkpoint, directory } = this.#options
    if (!checkpoint.isDue()) return
    const path = join(directory, 'checkpoint.part')
    try {
      await checkSpace(directory)
      await this.#write(path, segments, state())
      await checkpoint.keep(path)
    } catch {
      checkpoint.stop()
      await rm(path, { force: true }).catch(() => undefined)
    }
  }

  async #write(path: string, segments: number, state: OverlapAddState): Promise<void> {
    const fingerprint = await this.#options.fingerprint()
    const writer = await openPart(path)
    try {
      const files: FilesIndex['files'] = []
      for (const { stem, path: grown, bytes, clippedSamples, peaks } of this.#growing()) {
        const kept = this.#keptOf(stem)
        const range = await appended(writer, grown, { from: kept.bytes, bytes })
        const keptPeaks = peaks && (await peaksAppended(writer, peaks, kept.peaks))
        files.push({ stem, ...range, clippedSamples, peaks: keptPeaks })
        this.#kept.set(stem, { bytes, peaks: keptPeaks?.bytes ?? 0 })
      }
      const kept = await appendState(writer, 0, state)
      await writer.finish({ format: 3, fingerprint, segments, state: kept, files } satisfies FilesIndex)
    } catch (error) {
      await writer.abandon()
      throw error
    }
  }

  #keptOf(stem: StemName): { bytes: number; peaks: number } {
    return this.#kept.get(stem) ?? { bytes: 0, peaks: 0 }
  }
}

/** @throws errors of the file system; an error for a file that is not a part of this kind */
export async function readFilesIndex(path: string, bytes: number): Promise<FilesIndex> {
  return indexSchema.parse(await readJson(path, bytes))
}

/** The bytes `from` to `bytes` of a file. */
interface Range {
  from: number
  bytes: number
}

/** Copies a range of the file to the part. */
async function appended(writer: PartWriter, path: string, range: Range): Promise<Range & { offset: number }> {
  const offset = await writer.append([])
  await withFile(path, 'r', async (file) => {
    for await (const piece of piecesOf(file, range.from, range.bytes)) await writer.append([piece])
  })
  return { ...range, offset }
}

async function peaksAppended(writer: PartWriter, { path, bytes, ...last }: PeaksState, from: number) {
  return { ...last, ...(await appended(writer, path, { from, bytes })) }
}

/** Rebuilds a file from its ranges, which parts hold at `offset`. */
async function joinRanges(
  path: string,
  ranges: readonly (Range & { source: string; offset: number })[],
): Promise<void> {
  await withFile(path, 'w', async (file) => {
    for (const { source, from, bytes, offset } of ranges)
      await withFile(source, 'r', async (part) => {
        for await (const piece of piecesOf(part, offset, offset + bytes - from)) await file.writeFile(piece)
      })
  })
}

/** Each piece is valid until the next one is requested. */
async function* piecesOf(file: FileHandle, from: number, to: number): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(Math.min(pieceBytes, to - from))
  for (let at = from; at < to; at += pieceBytes) {
    const piece = buffer.subarray(0, to - at)
    await readInto(piece, file, at)
    yield piece
  }
}
