/** States of a job's step. */
export const stepStates = { done: 'Done', failed: 'Failed', waiting: 'Waiting' } as const

const steps: [ms: number, unit: string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
]

/** The two largest units of a length of time, such as `2 min 5 s`. */
export function durationWords(ms: number): string {
  if (ms < 1000) return ms < 100 ? '< 0.1 s' : `${(ms / 1000).toFixed(1)} s`
  const first = steps.findIndex(([step]) => ms >= step)
  const parts: string[] = []
  let rest = ms
  for (const [step, unit] of steps.slice(first, first + 2)) {
    const count = Math.floor(rest / step)
    rest -= count * step
    if (count > 0) parts.push(`${count} ${unit}`)
  }
  return parts.join(' ')
}

export function sizeWords(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}
