import { openPcm, type PcmSource } from './pcm-source.js'
import type { ResultFiles } from './result-files.js'
import { sampleAt } from './sample-at.js'

/** Lowest and highest sample of each stretch of a track, -1..1. */
export interface Peaks {
  lowest: Float32Array
  highest: Float32Array
}

export interface Stem {
  name: string
  source: PcmSource
  /** Resolves when they are read; for results without a list of peaks that takes the whole file. */
  peaks: Promise<Peaks>
}

const audioEnding = /\.(wav|flac|mp3|m4a|aac|ogg|opus)$/i
const computedPeaks = 1500

export function isAudio(fileName: string): boolean {
  return audioEnding.test(fileName)
}

/** Every output that is audio, with its peaks. */
export async function openStems(files: ResultFiles, signal: AbortSignal): Promise<Stem[]> {
  const names = files.names.filter((name) => isAudio(files.fileName(name)))
  return Promise.all(
    names.map(async (name) => {
      const source = await openPcm(files.reader(name), signal)
      const peaks = files.names.includes(`${name}Peaks`)
        ? listedPeaks(files, `${name}Peaks`, signal)
        : measuredPeaks(source, signal)
      peaks.catch(() => undefined)
      return { name, source, peaks }
    }),
  )
}

async function listedPeaks(files: ResultFiles, name: string, signal: AbortSignal): Promise<Peaks> {
  const bytes = await files.reader(name)({ start: 0 }, signal)
  const { data, bits } = JSON.parse(new TextDecoder().decode(bytes)) as { data: number[]; bits: number }
  const full = 2 ** (bits - 1)
  const every = (offset: number) =>
    Float32Array.from({ length: data.length / 2 }, (_, index) => sampleAt(data, 2 * index + offset) / full)
  return { lowest: every(0), highest: every(1) }
}

async function measuredPeaks(source: PcmSource, signal: AbortSignal): Promise<Peaks> {
  const count = Math.min(computedPeaks, source.frames)
  const [lowest, highest] = [new Float32Array(count), new Float32Array(count)]
  const pieceFrames = 10 * source.sampleRate
  for (let from = 0; from < source.frames; from += pieceFrames) {
    for (const plane of await source.read(from, pieceFrames, signal)) {
      for (const [frame, sample] of plane.entries()) {
        const index = Math.floor(((from + frame) / source.frames) * count)
        if (sample < sampleAt(lowest, index)) lowest[index] = sample
        if (sample > sampleAt(highest, index)) highest[index] = sample
      }
    }
  }
  return { lowest, highest }
}
