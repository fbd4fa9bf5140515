import { concat } from '../bytes.js'
import { badInput, StemworkError } from '../../engine/errors.js'
import type { AudioBlock, AudioStream } from '../dsp/audio-stream.js'
import { requireSimd } from '../dsp/kernels/kernel.js'
import { integerSteps } from './integer-steps.js'
import { quietly } from './quiet-console.js'
import { silenceDamage } from './silence-damage.js'
import { undecoded, UndecodedError } from './undecoded.js'

/** Encoded bytes in the order that a decoder needs. */
export type EncodedPieces = AsyncGenerator<Uint8Array, void, undefined>

interface Decoded {
  channelData: readonly Float32Array[]
  sampleRate: number
}

/** Takes encoded bytes piece by piece, and `undefined` at the end; returns the samples that each call completes. */
export interface CodecDecoder {
  (bytes?: Uint8Array): Promise<Decoded>
  free(): void
}

/** Loads a decoder by the name that `audio-decode` has for its codec. */
export type CodecLoader = (codec: string) => Promise<CodecDecoder>

/** Encoded audio and its decoder. */
export interface Encoded {
  codec: string
  load: CodecLoader
  pieces: EncodedPieces
  /** For messages. */
  format: string
  /** For codecs whose output does not tell. */
  declared?: DeclaredMono
}

/** Whether the file calls its sound mono. */
export interface DeclaredMono {
  /** Looks in the decoder's input. */
  look(bytes: Uint8Array): void
  isMono(): boolean
}

/**
 * A damaged frame may claim another sample rate. If more audio than this differs, the stream has really changed its
 * rate.
 */
const straySecondsAllowed = 1

/**
 * Decodes with a codec, which is loaded on first use (so the AAC decoder, which is GPL code, is loaded for AAC files
 * only). The first audio is decoded before this returns. An error after the first audio ends the stream, as for a
 * truncated file, because the codecs report a cut-off end in the same way; the warnings say so.
 *
 * @throws UndecodedError when there is no audio.
 */
export async function openCodec({ pieces, ...encoded }: Encoded): Promise<AudioStream> {
  return await openLinks(encoded, [pieces])
}

/** Each link costs a decoder, however short it is. The last decoder also takes all links beyond this number. */
export const mostLinks = 100

/** The same for files joined end to end: each link has its own decoder, which knows where its audio ends. */
export async function openLinks(
  encoded: Omit<Encoded, 'pieces'>,
  links: AsyncIterable<EncodedPieces> | Iterable<EncodedPieces>,
): Promise<AudioStream> {
  const warnings: string[] = []
  const { format, declared } = encoded
  const blocks = decodeLinks(encoded, links, warnings)
  const first = await blocks.next()
  if (first.done) throw undecoded(format)
  const { sampleRate, channels } = first.value
  const channelCount = declared?.isMono() === false ? Math.max(2, channels.length) : channels.length
  return {
    sampleRate,
    channelCount,
    sampleCount: undefined,
    format,
    warnings,
    blocks: sameShape(first.value, blocks, { channelCount, adapts: declared !== undefined }, warnings),
  }
}

/**
 * Decoders buffer bytes that they cannot decode yet and copy them for each piece. So after this many pieces without
 * audio, pieces are made larger, and finally the decoder gives up. Pieces, not bytes: the index of a long file is one.
 */
const patiencePieces = 64
const impatientPieceBytes = 128 * 1024
const mostSilentBytes = 64 * 1024 * 1024

/** The next piece, joined with those after it until it has at least `leastBytes` bytes. */
export async function nextPiece(pieces: EncodedPieces, leastBytes: number): Promise<IteratorResult<Uint8Array, void>> {
  const first = await pieces.next()
  if (first.done || first.value.length >= leastBytes) return first
  const parts = [first.value]
  for (let length = first.value.length; length < leastBytes;) {
    const next = await pieces.next()
    if (next.done) break
    parts.push(next.value)
    length += next.value.length
  }
  return { done: false, value: concat(parts) }
}

async function* decodeLinks(
  encoded: Omit<Encoded, 'pieces'>,
  links: AsyncIterable<EncodedPieces> | Iterable<EncodedPieces>,
  warnings: string[],
): AsyncGenerator<RatedBlock, void, undefined> {
  let hasAudio = false
  for await (const pieces of links) {
    try {
      for await (const block of decodeAll({ ...encoded, pieces }, warnings)) {
        hasAudio = true
        yield block
      }
    } catch (error) {
      if (!hasAudio || !(error instanceof UndecodedError)) throw error
      warnings.push(`A part of the ${encoded.format} file holds no audio that can be decoded.`)
    }
  }
}

type RatedBlock = AudioBlock & { sampleRate: number }

async function* decodeAll(
  { codec, load, pieces, format, declared }: Encoded,
  warnings: string[],
): AsyncGenerator<RatedBlock, void, undefined> {
  const decoder = await createDecoder(codec, load).catch((error: unknown) => {
    throw StemworkError.is(error) ? error : undecoded(format, error)
  })
  const steps = integerSteps(codec)
  let hasAudio = false
  let silenced = 0
  /** Since the last audio. */
  let silentBytes = 0
  let silentPieces = 0
  try {
    for (;;) {
      const piece = await nextPiece(pieces, silentPieces > patiencePieces ? impatientPieceBytes : 1)
      if (!piece.done && !hasAudio) {
        steps.look(piece.value)
        declared?.look(piece.value)
      }
      let decoded: Decoded
      try {
        decoded = await quietly(() => decoder(piece.done ? undefined : piece.value))
      } catch (error) {
        if (!hasAudio) throw undecoded(format, error)
        warnings.push(`The ${format} decoder gave up before the end of the file, which is damaged or was cut off.`)
        break
      }
      if (isAudio(decoded)) {
        hasAudio = true
        silentBytes = silentPieces = 0
        steps.correct(decoded.channelData)
        silenced += silenceDamage(decoded.channelData)
        yield { sampleRate: decoded.sampleRate, channels: [...decoded.channelData] }
      }
      if (piece.done) break
      silentBytes += piece.value.length
      silentPieces++
      if (silentBytes > mostSilentBytes) {
        const what = `The ${format} decoder found no audio in ${mostSilentBytes / 2 ** 20} MiB of the file`
        if (!hasAudio) throw undecoded(format, new Error(what))
        warnings.push(`${what} and gave up; the file is damaged.`)
        break
      }
    }
  } finally {
    decoder.free()
  }
  if (silenced > 0)
    warnings.push(`${silenced} samples were far too loud to be real and were silenced; the file is damaged.`)
}

function isAudio({ channelData, sampleRate }: Decoded): boolean {
  return sampleRate > 0 && channelData.length > 0 && channelData[0]!.length > 0
}

interface Shape {
  channelCount: number
  /** Whether mono becomes stereo, and stereo mono, where the other is expected. */
  adapts: boolean
}

async function* sameShape(
  first: RatedBlock,
  rest: AsyncIterable<RatedBlock>,
  { channelCount, adapts }: Shape,
  warnings: string[],
): AsyncGenerator<AudioBlock, void, undefined> {
  const shaped = (channels: Float32Array[]) => (adapts ? adapted(channels, channelCount) : channels)
  const begin = { ...first, channels: shaped(first.channels) }
  yield { channels: begin.channels }
  let straySamples = 0
  let isMixed = false
  for await (const block of rest) {
    const channels = shaped(block.channels)
    isMixed ||= channels.length < block.channels.length
    if (block.sampleRate === begin.sampleRate && channels.length === channelCount) {
      yield { channels }
      continue
    }
    straySamples += channels[0]!.length
    if (straySamples > straySecondsAllowed * block.sampleRate) {
      const change = `from ${describe(begin)} to ${describe({ ...block, channels })}`
      throw badInput(
        'decode_failed',
        `The file changes ${change} partway through, which is not supported. Split it into one file for each part.`,
      )
    }
  }
  if (isMixed) warnings.push('The file begins in mono; its stereo parts were mixed to mono.')
  if (straySamples > 0)
    warnings.push(`${straySamples} samples with another rate or number of channels were left out; the file is damaged.`)
}

function adapted(channels: Float32Array[], count: number): Float32Array[] {
  const [left, right] = channels
  if (count === 2 && !right) return [left!, left!.slice()]
  if (count === 1 && right && channels.length === 2) return [left!.map((value, i) => (value + right[i]!) / 2)]
  return channels
}

function describe({ channels, sampleRate }: RatedBlock): string {
  return `${channels.length} channels at ${sampleRate} Hz`
}

async function createDecoder(codec: string, load: CodecLoader): Promise<CodecDecoder> {
  // Checked first: a platform without WebAssembly is not the file's fault.
  requireSimd()
  return quietly(() => load(codec))
}
