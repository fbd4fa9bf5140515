import type { z } from 'zod'
import type { peaksSchema } from '../schemas.js'

export type Peaks = z.infer<typeof peaksSchema>

/** The same peaks in at most `length` entries: neighbours are merged, so that they still contain every sample. */
export function fewerPeaks(peaks: Peaks, length: number): Peaks {
  const merged = Math.max(1, Math.ceil(peaks.length / length))
  const data: number[] = []
  for (let from = 0; from < peaks.length; from += merged) {
    const pairs = peaks.data.slice(2 * from, 2 * (from + merged))
    data.push(Math.min(...pairs.filter((_, index) => index % 2 === 0)))
    data.push(Math.max(...pairs.filter((_, index) => index % 2 === 1)))
  }
  return { ...peaks, samples_per_pixel: peaks.samples_per_pixel * merged, length: data.length / 2, data }
}
