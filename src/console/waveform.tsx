import { useEffect, useRef, useState } from 'preact/hooks'
import { canvasSize, useRedraws } from './canvas.js'
import { sampleAt } from './sample-at.js'
import type { Peaks, Stem } from './stems.js'

const barPixels = 2
const gapPixels = 1

/** The whole track in bars; the part that was played stands out, by a second canvas that the style sheet clips. */
export function Waveform({ stem, title }: { stem: Stem; title: string }) {
  const [peaks, setPeaks] = useState<Peaks>()
  const rest = useRef<HTMLCanvasElement>(null)
  const played = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    let isGone = false
    stem.peaks.then(
      (read) => isGone || setPeaks(read),
      () => undefined,
    )
    return () => void (isGone = true)
  }, [stem])
  useRedraws(rest, () => {
    for (const { current } of [rest, played]) if (current && peaks) drawBars(current, peaks)
  }, [peaks])
  return (
    <>
      <canvas ref={rest} class="rest" role="img" aria-label={`Waveform of ${title}`} />
      <canvas ref={played} class="played" aria-hidden="true" />
    </>
  )
}

function drawBars(canvas: HTMLCanvasElement, { lowest, highest }: Peaks): void {
  const { context, width, height } = canvasSize(canvas)
  if (!context) return
  context.clearRect(0, 0, width, height)
  context.fillStyle = getComputedStyle(canvas).color
  const bars = Math.max(1, Math.floor(width / (barPixels + gapPixels)))
  const middle = height / 2
  for (let bar = 0; bar < bars; bar++) {
    const from = Math.floor((bar * lowest.length) / bars)
    const to = Math.max(from + 1, Math.floor(((bar + 1) * lowest.length) / bars))
    let peak = 0
    for (let index = from; index < to; index++)
      peak = Math.max(peak, -sampleAt(lowest, index), sampleAt(highest, index))
    const half = Math.max(0.75, peak * (middle - 2))
    context.beginPath()
    context.roundRect(bar * (barPixels + gapPixels), middle - half, barPixels, 2 * half, barPixels / 2)
    context.fill()
  }
}
