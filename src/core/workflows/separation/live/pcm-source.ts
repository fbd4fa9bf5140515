import { untilAborted } from '../../../engine/workflow/until-aborted.js'
import { badInput, invalidOptions } from '../../../engine/errors.js'

/** Blocks of samples, one plane for each channel, in WAVE order; -1 to 1, but larger values do no harm. */
export type LiveSource = AsyncIterable<Float32Array[]> | ReadableStream<Float32Array[]>

const rates = { min: 8000, max: 192_000 } as const
/** Short compared with a hop, so that late estimates are noticed soon. */
const pieceSeconds = 0.02

/**
 * Yields the blocks of a source in pieces of at most 20 ms.
 *
 * @throws StemworkError `INVALID_OPTIONS` for a sample rate out of bounds, `BAD_INPUT` for a block with other channels
 * than the first, or channels of different lengths; the signal's reason
 */
export async function* pcmPieces(
  source: LiveSource,
  sampleRate: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Float32Array[], void, void> {
  if (!(Number.isInteger(sampleRate) && sampleRate >= rates.min && sampleRate <= rates.max))
    throw invalidOptions(`sampleRate must be a whole number from ${rates.min} to ${rates.max}, not ${sampleRate}.`)
  const pieceSamples = Math.ceil(pieceSeconds * sampleRate)
  const blocks = iteratorOf(source)
  let channelCount: number | undefined
  try {
    for (;;) {
      const next = await untilAborted(blocks.next(), signal)
      if (next.done) return
      const planes = next.value
      requireFloats(planes)
      checkBlock(planes, (channelCount ??= planes.length))
      for (let from = 0; from < planes[0]!.length; from += pieceSamples)
        yield planes.map((plane) => plane.subarray(from, from + pieceSamples))
    }
  } finally {
    // Not awaited: a source that waits for sound would block a consumer that has stopped listening.
    blocks.return?.().catch(() => undefined)
  }
}

/** Checks by name: arrays of another realm, such as a test's, are valid, too. Integers would be heard as noise. */
function requireFloats(block: unknown): asserts block is Float32Array[] {
  if (Array.isArray(block) && block.every((plane) => plane?.[Symbol.toStringTag] === 'Float32Array')) return
  throw badInput('unsupported_format', 'A block must be a list with a Float32Array for each channel, from -1 to 1.')
}

function checkBlock(planes: readonly Float32Array[], channelCount: number): void {
  const lengths = new Set(planes.map(({ length }) => length))
  if (planes.length > 0 && planes.length === channelCount && lengths.size === 1) return
  throw badInput(
    'unsupported_format',
    `A block has ${planes.length} channels of ${[...lengths].join(' and ')} samples; expected ` +
      `${Math.max(1, channelCount)} of one length, as in the first block.`,
  )
}

type Blocks = Pick<AsyncIterator<Float32Array[], unknown, undefined>, 'next' | 'return'>

function iteratorOf(source: LiveSource): Blocks {
  if (Symbol.asyncIterator in source) return source[Symbol.asyncIterator]()
  // Safari's streams are not iterable.
  const reader = (source satisfies ReadableStream<Float32Array[]> as ReadableStream<Float32Array[]>).getReader()
  return {
    next: async () => {
      const { done, value } = await reader.read()
      return done ? { done, value: undefined } : { done, value }
    },
    return: async () => {
      await reader.cancel()
      return { done: true, value: undefined }
    },
  }
}
