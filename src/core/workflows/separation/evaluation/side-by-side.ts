import { badInput } from '../../../engine/errors.js'
import type { AudioBlock, AudioStream } from '../../../media/dsp/audio-stream.js'
import { availableInAll, type BlockCursor, blockCursor } from '../pipeline/block-cursor.js'

export interface NamedStream {
  /** Its name in messages. */
  name: string
  stream: AudioStream
}

/** Lossy codecs pad the end of a file. A larger difference means a different recording. */
const mostOverhangSeconds = 0.05

/**
 * Joins the channels of several streams into one stream, cut to the shortest. Memory does not grow with their length.
 *
 * @throws StemworkError `BAD_INPUT` for different sample rates (at once) and for lengths that differ by more than 50 ms
 * (at the end)
 */
export function sideBySide(sources: readonly NamedStream[]): AudioStream {
  const { name, stream } = sources[0]!
  for (const other of sources) {
    if (other.stream.sampleRate === stream.sampleRate) continue
    throw badInput(
      'unsupported_format',
      `The files have different sample rates: ${name} ${stream.sampleRate} Hz, ${other.name} ` +
        `${other.stream.sampleRate} Hz. Convert them to the same rate.`,
    )
  }
  const channelCount = sources.reduce((sum, source) => sum + source.stream.channelCount, 0)
  return {
    sampleRate: stream.sampleRate,
    channelCount,
    sampleCount: undefined,
    format: stream.format,
    blocks: joined(sources, stream.sampleRate),
  }
}

async function* joined(sources: readonly NamedStream[], sampleRate: number): AsyncGenerator<AudioBlock> {
  const cursors = sources.map(({ stream }) => blockCursor(stream.blocks, ({ channels }) => channels[0]!.length))
  let taken = 0
  for (;;) {
    const sampleCount = await availableInAll(cursors)
    if (sampleCount === 0) break
    yield {
      channels: cursors.flatMap((cursor) => cursor.take(sampleCount, ({ channels }, part) => channels.map(part))),
    }
    taken += sampleCount
  }
  const shortest = sources[await firstEnded(cursors)]!.name
  for (const [index, cursor] of cursors.entries()) {
    if (!(await hasMoreThan(mostOverhangSeconds * sampleRate, cursor))) continue
    const end = (taken / sampleRate).toFixed(2)
    throw badInput(
      'decode_failed',
      `The files have different lengths: ${shortest} ends after ${end} s, ${sources[index]!.name} is longer. Cut ` +
        'them to the same length.',
    )
  }
}

async function firstEnded(cursors: readonly BlockCursor<AudioBlock>[]): Promise<number> {
  for (const [index, cursor] of cursors.entries()) if ((await cursor.available()) === 0) return index
  return 0
}

/** Whether the cursor has more samples than that. Reads on as far as needed. */
async function hasMoreThan(sampleCount: number, cursor: BlockCursor<AudioBlock>): Promise<boolean> {
  for (let left = sampleCount; left >= 0;) {
    const available = await cursor.available()
    if (available === 0) return false
    left -= cursor.take(available, () => available)
  }
  return true
}
