import type { SongClient } from '../service/page-client.js'
import { openPcm, type PcmSource } from './pcm-source.js'
import type { ResultFiles } from './result-files.js'
import { sampleAt } from './sample-at.js'
import { isAudio } from '../words/stem-names.js'

/** Lowest and highest sample of each stretch of a track, -1..1. */
export interface Peaks {
  lowest: Float32Array
  highest: Float32Array
  /** Stretches per second. Without it, all of them span the whole track. */
  perSecond?: number
}

export interface Stem {
  name: string
  source: PcmSource
  /** Rejects if the service cannot measure the file; it is played anyway. */
  peaks: Promise<Peaks>
  /** Peaks of what is made so far; a new object each time. */
  grownPeaks?: Peaks
}

/** Every output that is audio, with its peaks. */
export async function openStems(client: SongClient, files: ResultFiles, signal: AbortSignal): Promise<Stem[]> {
  const names = files.names.filter((name) => isAudio(files.storedName(name)))
  return Promise.all(
    names.map(async (name) => {
      const peaks = client.peaks(files.jobId, name, { signal }).then(({ data, bits }) => {
        const full = 2 ** (bits - 1)
        const every = (offset: number) =>
          Float32Array.from({ length: data.length / 2 }, (_, index) => sampleAt(data, 2 * index + offset) / full)
        return { lowest: every(0), highest: every(1) }
      })
      peaks.catch(() => undefined)
      return { name, source: await openPcm(files.reader(name), signal), peaks }
    }),
  )
}
