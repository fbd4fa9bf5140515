import type { Manifest } from '../models/manifest.js'
import type { StemName } from '../stems.js'

/** Which of a network's outputs make up a stem: their indices, to be added. */
export type StemSources = ReadonlyMap<StemName, readonly number[]>

/**
 * The wanted ones of the stems that a network gives in the order of the manifest. The accompaniments of a model that has
 * none as such are everything but its vocals.
 */
export function stemSources({ stems }: Manifest, wanted: readonly StemName[] = stems): StemSources {
  const sources = new Map<StemName, readonly number[]>()
  for (const stem of wanted) {
    const index = stems.indexOf(stem)
    if (index >= 0) sources.set(stem, [index])
    else if (stem === 'accompaniments' && stems.includes('vocals') && stems.length > 1) {
      sources.set(
        stem,
        [...stems.keys()].filter((each) => stems[each] !== 'vocals'),
      )
    }
  }
  if (wanted.includes('vocals') && !stems.includes('vocals') && stems.includes('accompaniments')) {
    sources.set('accompaniments', [stems.indexOf('accompaniments')])
  }
  return sources
}

/** Adds the given parts of an array of equally long ones; a single one is returned as it is. */
export function sumOfParts(parts: readonly Float32Array[], scratch: Float32Array): Float32Array {
  if (parts.length === 1) return parts[0]
  const sum = scratch.subarray(0, parts[0].length)
  sum.set(parts[0])
  for (const part of parts.slice(1)) for (let i = 0; i < sum.length; i++) sum[i] += part[i]
  return sum
}
