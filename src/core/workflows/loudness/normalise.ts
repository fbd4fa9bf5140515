import type { Loudness } from '../../media/loudness/loudness-meter.js'

export interface Normalisation {
  gainDb: number
  /** Whether the ceiling leaves the audio quieter than the target. */
  isLimitedByPeak: boolean
}

/**
 * The one gain that brings audio to a loudness without its true peak exceeding a ceiling. Nothing is compressed: with
 * loud peaks it stays below the target. Silence is left as it is.
 *
 * @param target LUFS
 * @param ceiling dBTP
 */
export function normalisation({ integrated, truePeak }: Loudness, target: number, ceiling: number): Normalisation {
  if (!Number.isFinite(integrated)) return { gainDb: 0, isLimitedByPeak: false }
  const wanted = target - integrated
  const most = ceiling - truePeak
  return { gainDb: Math.min(wanted, most), isLimitedByPeak: most < wanted }
}
