const steps: [ms: number, unit: string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
]

/** The two largest units of a length of time, such as `2 min 5 s`. */
export function duration(ms: number): string {
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

const clock = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit', second: '2-digit' })
const minute = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  second: '2-digit',
})

export function minuteOf(at: number): string {
  return minute.format(at)
}

export function clockTime(at: number): string {
  return clock.format(at)
}

/** With its day, if that is not today. */
export function timeOf(at: number): string {
  return new Date(at).toDateString() === new Date().toDateString() ? clock.format(at) : day.format(at)
}
