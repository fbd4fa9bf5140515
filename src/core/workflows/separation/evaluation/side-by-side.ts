import { badInput } from '../../../engine/errors.js'
import type { AudioBlock, AudioStream } from '../../../media/dsp/audio-stream.js'

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
  const cursors = sources.map(({ stream }) => new Cursor(stream))
  let taken = 0
  for (;;) {
    let sampleCount = Infinity
    for (const cursor of cursors) sampleCount = Math.min(sampleCount, await cursor.available())
    if (sampleCount === 0) break
    yield { channels: cursors.flatMap((cursor) => cursor.take(sampleCount)) }
    taken += sampleCount
  }
  const shortest = sources[await firstEnded(cursors)]!.name
  for (const [index, cursor] of cursors.entries()) {
    if (!(await cursor.hasMoreThan(mostOverhangSeconds * sampleRate))) continue
    const end = (taken / sampleRate).toFixed(2)
    throw badInput(
      'decode_failed',
      `The files have different lengths: ${shortest} ends after ${end} s, ${sources[index]!.name} is longer. Cut ` +
        'them to the same length.',
    )
  }
}

async function firstEnded(cursors: readonly Cursor[]): Promise<number> {
  for (const [index, cursor] of cursors.entries()) if ((await cursor.available()) === 0) return index
  return 0
}

/** Reads a stream in pieces of any size. */
class Cursor {
  readonly #blocks: AsyncIterator<AudioBlock>
  #channels: readonly Float32Array[] = [new Float32Array(0)]
  #offset = 0

  constructor({ blocks }: AudioStream) {
    this.#blocks = blocks[Symbol.asyncIterator]()
  }

  /** Samples per channel that can be taken; 0 at the end of the stream. */
  async available(): Promise<number> {
    while (this.#offset === this.#channels[0]!.length) {
      const next = await this.#blocks.next()
      if (next.done) return 0
      this.#channels = next.value.channels
      this.#offset = 0
    }
    return this.#channels[0]!.length - this.#offset
  }

  take(sampleCount: number): Float32Array[] {
    const from = this.#offset
    this.#offset += sampleCount
    return this.#channels.map((plane) => plane.subarray(from, from + sampleCount))
  }

  /** Reads on as far as needed. */
  async hasMoreThan(sampleCount: number): Promise<boolean> {
    let left = sampleCount
    while (left >= 0) {
      const available = await this.available()
      if (available === 0) return false
      this.take(available)
      left -= available
    }
    return true
  }
}
