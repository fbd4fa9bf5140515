import { resolve } from 'node:path'
import { badInput } from '../../../engine/errors.js'
import type { AudioBlock, AudioStream } from '../../dsp/audio-stream.js'
import { type EncodedPieces, nextPiece } from '../codec-stream.js'
import { damagedFile } from '../damaged-file.js'
import { ffmpegArguments } from './ffmpeg-arguments.js'
import { startFfmpeg, type FfmpegLimits, type FfmpegProcess } from './ffmpeg-process.js'
import { rawBlocks, rawEncodings } from '../pcm/raw-pcm.js'
import { silenceDamage } from '../silence-damage.js'
import { readWavHeader } from '../pcm/wav-header.js'

export interface FfmpegOptions {
  /** Name or path of the program. */
  program: string
  /** Name of ffmpeg's demuxer for the file. */
  demuxer: string
  format: string
  signal?: AbortSignal
  maxSeconds: number
  limits?: FfmpegLimits
}

/** Enough for the header that ffmpeg writes. */
const headBytes = 4096

/**
 * Decodes the first sound track of a file with ffmpeg, in its own process.
 *
 * @throws StemworkError `BAD_INPUT`: `no_audio` without a sound track, `decode_failed` when ffmpeg cannot read the
 * file; `MISSING_DEPENDENCY` when it cannot be started
 */
export async function openFfmpeg(path: string, options: FfmpegOptions): Promise<AudioStream> {
  const { program, demuxer, format, signal, maxSeconds, limits } = options
  const args = ffmpegArguments(resolve(path), demuxer, maxSeconds)
  const ffmpeg = await startFfmpeg(program, args, { signal, limits })
  try {
    const { value: head } = await nextPiece(ffmpeg.output, headBytes)
    if (!head || head.length < 12) throw await failure(ffmpeg, format)
    const header = await readWavHeader(inMemory(head), 0)
    const { sampleRate, channelCount, speakers, dataStart } = header
    if (head.length - dataStart < header.blockAlign) throw await failure(ffmpeg, format)
    const seconds = statedSeconds(ffmpeg.log())
    const warnings: string[] = []
    return {
      sampleRate,
      channelCount,
      // The length of the longest track, which is close enough to show progress.
      sampleCount: seconds && Math.round(seconds * sampleRate),
      format,
      speakers,
      warnings,
      blocks: readBlocks(ffmpeg, channelCount, head.subarray(dataStart), warnings),
    }
  } catch (error) {
    await ffmpeg.end()
    throw error
  }
}

function inMemory(bytes: Uint8Array): Parameters<typeof readWavHeader>[0] {
  return { size: bytes.length, read: async (position, length) => bytes.subarray(position, position + length) }
}

async function* readBlocks(
  ffmpeg: FfmpegProcess,
  channelCount: number,
  first: Uint8Array,
  warnings: string[],
): AsyncGenerator<AudioBlock, void, undefined> {
  try {
    let silenced = 0
    const bytes = following(first, ffmpeg.output)
    for await (const channels of rawBlocks(bytes, { encoding: rawEncodings.f32, channelCount })) {
      silenced += silenceDamage(channels)
      yield { channels }
    }
    const ending = await ffmpeg.ending()
    if (ending !== 0) warnings.push(`ffmpeg did not reach the end of the file: ${ending}.`)
    const complaints = complaintsIn(ffmpeg.log())
    if (complaints.length > 0)
      warnings.push(`ffmpeg found the file damaged; complaints: ${complaints.length}, the first: ${complaints[0]}`)
    if (silenced > 0) warnings.push(`${silenced} samples were far too loud to be real and were silenced.`)
  } finally {
    await ffmpeg.end()
  }
}

async function* following(first: Uint8Array, rest: EncodedPieces): EncodedPieces {
  yield first
  yield* rest
}

async function failure(ffmpeg: FfmpegProcess, format: string) {
  const ending = await ffmpeg.ending()
  const log = ffmpeg.log()
  if (/matches no streams|does not contain any stream/.test(log))
    return badInput('no_audio', 'The file has no audio track; expected a song or a video with sound.')
  const [complaint] = complaintsIn(log)
  const why = complaint ?? (ending === 0 ? 'it found no audio' : ending)
  return damagedFile(`The file looks like ${format}, but ffmpeg could not decode it: ${why}.`)
}

const longestComplaint = 200

/** Lines of the log that are errors, without addresses in memory and the file's path. */
function complaintsIn(log: string): string[] {
  return log
    .split('\n')
    .filter((line) => /\[(error|fatal|panic)\]/.test(line))
    .map((line) =>
      line
        .replace(/\[[^\]]*\]\s*/g, '')
        .replace(/file:.*?: /, '')
        .trim()
        .slice(0, longestComplaint),
    )
    .filter((line) => line !== '')
}

function statedSeconds(log: string): number | undefined {
  const found = /Duration: (\d+):(\d\d):(\d\d\.\d+)/.exec(log)
  if (!found) return undefined
  const [hours, minutes, seconds] = found.slice(1).map(Number)
  return hours! * 3600 + minutes! * 60 + seconds!
}
