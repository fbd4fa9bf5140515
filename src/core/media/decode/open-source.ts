import { synchsafe } from '../bytes.js'
import { badInput } from '../../engine/errors.js'
import type { AudioBlock, AudioStream } from '../dsp/audio-stream.js'
import { isTooLong, lengthDifference, statesTooLong, tooLong } from './audio-length.js'
import type { CodecLoader } from './codec-stream.js'
import { damagedFile } from './damaged-file.js'
import { type FileBytes, fileBytes, type ReadableBytes } from './file-bytes.js'
import { findMpegAudio } from './mpeg/frame-sync.js'
import { headerCount } from './header-count.js'
import { openFormat, type Head } from './open-format.js'
import { foreignFormats, sniff, sniffBytes, type ForeignFormat, type InputFormat } from './sniff.js'
import { statedBytes } from './stated-length.js'
import { UndecodedError } from './undecoded.js'
import { withWarnings } from './with-warnings.js'

export interface OpenSourceOptions {
  signal?: AbortSignal
  /**
   * Longer audio is rejected: before it is used if the header says so and the audio agrees, else as soon as that much
   * is decoded.
   */
  maxSeconds?: number
  /**
   * Begins at this sample if the file has this rate and allows random access; otherwise at the start (see
   * `firstSample` of the stream).
   */
  seek?: { sample: number; sampleRate: number }
  /** The decoders of compressed formats. */
  load: CodecLoader
  /** Opens a file that the decoders here cannot, or throws an error that says why not. */
  openOther(format: InputFormat | ForeignFormat, error: UndecodedError): Promise<AudioStream>
}

const lowestRate = 2_000
const highestRate = 768_000

/**
 * Opens an audio file, or a video file with sound, for streaming, wherever its bytes come from. Throws as `openAudio`
 * does.
 */
export async function openSource(source: ReadableBytes, options: OpenSourceOptions): Promise<AudioStream> {
  const file = fileBytes(source, options.signal)
  const head = await findAudio(file)
  const { format } = head
  const own = isForeign(format)
    ? Promise.reject(new UndecodedError(`The file is ${foreignFormats[format].name}.`))
    : openOwn(source, file, format, head, options)
  const stream = await own.catch((error: unknown) => {
    if (error instanceof UndecodedError) return options.openOther(format, error)
    throw error
  })
  if (!(stream.sampleRate >= lowestRate && stream.sampleRate <= highestRate)) {
    throw badInput(
      'decode_failed',
      `The file claims a sample rate of ${stream.sampleRate} Hz; expected ${lowestRate} to ${highestRate}.`,
    )
  }
  const { readFraction = file.readFraction } = stream
  const told = stream.statedSeconds === undefined ? missingBytes(head, file.size) : []
  const whole = told.length > 0 ? withWarnings(stream, () => told) : stream
  return limited({ ...whole, sampleRate: Math.round(stream.sampleRate), readFraction }, options)
}

/** Rounding, or padding at the end, is not worth a warning. */
const leastMissing = 0.001

function missingBytes({ format, bytes, position }: FoundAudio, size: number): string[] {
  const stated = position + (statedBytes(format, bytes) ?? 0)
  if (size >= stated * (1 - leastMissing)) return []
  return [`The file states a size of ${stated} bytes, but has ${size}: it was cut off.`]
}

/** Opens with a decoder of the package. Checks a header that states too much against the audio. */
async function openOwn(
  source: ReadableBytes,
  file: FileBytes,
  format: InputFormat,
  head: Head,
  { signal, maxSeconds = Infinity, load }: OpenSourceOptions,
): Promise<AudioStream> {
  const { stream, seconds } = await openFormat(file, format, head, load)
  if (seconds === undefined || !statesTooLong(seconds, maxSeconds)) return stream
  const trial = fileBytes(source, signal)
  const readBytes = () => trial.readFraction() * trial.size
  const { stream: tried } = await openFormat(trial, format, head, load)
  if (await isTooLong(tried, seconds, maxSeconds, { size: trial.size, readBytes })) throw tooLong(maxSeconds)
  return { ...stream, sampleCount: undefined }
}

export function isForeign(format: InputFormat | ForeignFormat): format is ForeignFormat {
  return Object.hasOwn(foreignFormats, format)
}

/** MP3 streams may begin with other data: web pages, large pictures. */
const mostJunkBytes = 4 * 1024 * 1024

type FoundAudio = Head & { format: InputFormat | ForeignFormat }

async function findAudio(file: FileBytes): Promise<FoundAudio> {
  const head = await readHead(file)
  try {
    return { ...head, format: sniff(head.bytes) }
  } catch (error) {
    const position = await findLateMpeg(file, head.position)
    if (position === undefined) throw error
    return { bytes: await file.read(position, sniffBytes), position, format: 'mp3' }
  }
}

/** Position of MPEG audio after unknown bytes. The later it is, the more frames must agree. */
async function findLateMpeg(file: FileBytes, from: number): Promise<number | undefined> {
  for (let at = from + sniffBytes / 2; at < Math.min(file.size, from + mostJunkBytes); at += sniffBytes / 2) {
    const found = findMpegAudio(await file.read(at, sniffBytes), 8)
    if (found && !found.isFreeFormat) return at + found.position
  }
  return undefined
}

/** The first bytes after ID3v2 tags, which can precede MP3, AAC, FLAC, WAV and others and be larger than any buffer. */
async function readHead(file: FileBytes): Promise<Head> {
  const count = headerCount('ID3 tags')
  let position = 0
  for (;;) {
    const tag = await file.read(position, 10)
    if (tag.length < 10 || String.fromCharCode(tag[0]!, tag[1]!, tag[2]!) !== 'ID3')
      return { bytes: await file.read(position, sniffBytes), position }
    count()
    position += 10 + synchsafe(tag, 6) + (tag[5]! & 0x10 ? 10 : 0)
    if (position >= file.size) throw damagedFile('The file ends within its ID3 tag, before any audio. It was cut off.')
  }
}

function limited(stream: AudioStream, { signal, maxSeconds = Infinity, seek }: OpenSourceOptions): AudioStream {
  if (stream.sampleCount !== undefined && stream.sampleCount > maxSeconds * stream.sampleRate) throw tooLong(maxSeconds)
  const warnings: string[] = []
  const { blocksFrom, ...rest } = stream
  const isSought =
    seek && blocksFrom && seek.sampleRate === stream.sampleRate && seek.sample <= (stream.sampleCount ?? 0)
  const begun = isSought ? { ...rest, blocks: blocksFrom(seek.sample), firstSample: seek.sample } : rest
  return { ...begun, warnings, blocks: limitedBlocks(begun, maxSeconds, warnings, signal) }
}

async function* limitedBlocks(
  { blocks, sampleRate, statedSeconds, warnings: lost, firstSample = 0 }: AudioStream,
  maxSeconds: number,
  warnings: string[],
  signal?: AbortSignal,
): AsyncGenerator<AudioBlock> {
  let sampleCount = firstSample
  for await (const block of blocks) {
    signal?.throwIfAborted()
    sampleCount += block.channels[0]!.length
    if (sampleCount > maxSeconds * sampleRate) throw tooLong(maxSeconds)
    yield block
  }
  const differs = statedSeconds !== undefined && lengthDifference(statedSeconds, sampleCount / sampleRate)
  warnings.push(...(lost ?? []), ...(differs ? [differs] : []))
}
