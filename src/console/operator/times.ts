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

/** The time of day, with the date if it is not today. */
export function timeOf(at: number): string {
  return new Date(at).toDateString() === new Date().toDateString() ? clock.format(at) : day.format(at)
}
