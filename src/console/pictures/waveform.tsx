import { useRef } from 'preact/hooks'
import { canvasSize, useRedraws } from '../elements/canvas.js'
import { sampleAt } from '../sources/sample-at.js'
import type { SongRhythm } from '../player/rhythm.js'
import type { Peaks, Stem } from '../sources/stems.js'
import { useAnswer } from '../elements/use-answer.js'
import type { ViewWindow } from './view-window.js'

const barPixels = 2
const gapPixels = 1
const leastBeatPixels = 8

interface WaveformProps {
  stem: Stem
  /** For the grid of beats. */
  rhythm: SongRhythm | undefined
  title: string
  view: ViewWindow
  duration: number
}

/**
 * Bars for the part of the track in view. A second canvas, which the style sheet clips, highlights the part that was
 * played.
 */
export function Waveform({ stem, rhythm, title, view, duration }: WaveformProps) {
  const measured = useAnswer<Peaks | 'none'>(() => stem.peaks.catch(() => 'none'), [stem])
  const rest = useRef<HTMLCanvasElement>(null)
  const played = useRef<HTMLCanvasElement>(null)
  const peaks = measured ?? stem.grownPeaks
  useRedraws(rest, () => {
    if (!peaks || peaks === 'none') return
    for (const { current } of [rest, played]) {
      if (!current) continue
      drawBars(current, peaks, view, duration)
      if (rhythm) drawBeats(current, rhythm, view)
    }
  }, [peaks, rhythm, view.from, view.to])
  return (
    <>
      <canvas ref={rest} class="rest" role="img" aria-label={`Waveform of ${title}`} />
      <canvas ref={played} class="played" aria-hidden="true" />
      {!peaks && (
        <span class="drawing quiet">
          {stem.source.isGrowing ? 'The waveform is drawn when the song is done.' : 'Drawing …'}
        </span>
      )}
      {peaks === 'none' && <span class="drawing quiet">No waveform is available. You can still play this stem.</span>}
    </>
  )
}

function drawBars(canvas: HTMLCanvasElement, peaks: Peaks, view: ViewWindow, duration: number): void {
  const { context, width, height } = canvasSize(canvas)
  if (!context) return
  context.clearRect(0, 0, width, height)
  context.fillStyle = getComputedStyle(canvas).color
  const bars = Math.max(1, Math.floor(width / (barPixels + gapPixels)))
  const middle = height / 2
  const { lowest, highest, perSecond = lowest.length / duration } = peaks
  const perBar = ((view.to - view.from) * perSecond) / bars
  for (let bar = 0; bar < bars; bar++) {
    const from = Math.floor(view.from * perSecond + bar * perBar)
    const to = Math.max(from + 1, Math.floor(view.from * perSecond + (bar + 1) * perBar))
    let peak = 0
    for (let index = from; index < Math.min(to, lowest.length); index++)
      peak = Math.max(peak, -sampleAt(lowest, index), sampleAt(highest, index))
    // Parts that are not made yet are drawn faintly.
    context.globalAlpha = from < lowest.length ? 1 : 0.4
    const half = Math.max(0.75, peak * (middle - 2))
    context.beginPath()
    context.roundRect(bar * (barPixels + gapPixels), middle - half, barPixels, 2 * half, barPixels / 2)
    context.fill()
  }
}

/** Lines at the beats, stronger at bars, unless they would lie too close. */
function drawBeats(canvas: HTMLCanvasElement, { beats, bars }: SongRhythm, { from, to }: ViewWindow): void {
  const context = canvas.getContext('2d')
  if (!context) return
  const { clientWidth, clientHeight } = canvas
  const perSecond = clientWidth / (to - from)
  for (const [times, opacity] of [
    [beats, 0.3],
    [bars, 0.6],
  ] as const) {
    const shown = times.filter((time) => time >= from && time <= to)
    if (shown.length > clientWidth / leastBeatPixels) continue
    context.globalAlpha = opacity
    for (const time of shown) context.fillRect(Math.round((time - from) * perSecond), 0, 1, clientHeight)
  }
  context.globalAlpha = 1
}
