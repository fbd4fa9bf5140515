/** The part of the track that is on the screen, in seconds. */
export interface ViewWindow {
  from: number
  to: number
}

const shortestSeconds = 2

/** Zooms by a factor and keeps the time `around` where it is on the screen, as far as the ends of the track allow. */
export function zoomed({ from, to }: ViewWindow, factor: number, around: number, duration: number): ViewWindow {
  const length = Math.min(duration, Math.max(Math.min(shortestSeconds, duration), (to - from) / factor))
  const share = Math.max(0, Math.min(1, (around - from) / (to - from)))
  return moved({ from: around - share * length, to: around + (1 - share) * length }, 0, duration)
}

/** Moves the window, and stops it at the ends of the track. */
export function moved({ from, to }: ViewWindow, seconds: number, duration: number): ViewWindow {
  const length = Math.min(duration, to - from)
  const start = Math.max(0, Math.min(duration - length, from + seconds))
  return { from: start, to: start + length }
}

/** The window that shows the position: turned like a page when the position leaves it. */
export function following(view: ViewWindow, position: number, duration: number): ViewWindow {
  if (position >= view.from && position <= view.to) return view
  return moved(view, position - view.from, duration)
}

/** Seconds between two labels of a ruler, so that about `count` of them fit. */
export function rulerStep(seconds: number, count: number): number {
  const steps = [0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800]
  return steps.find((step) => seconds / step <= count) ?? 3600
}
