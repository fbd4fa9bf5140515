import { usePictureGestures } from './picture-gestures.js'
import type { Loop } from './player.js'
import { rulerStep, type ViewWindow } from './view-window.js'
import { clock } from './words.js'

interface RulerProps {
  view: ViewWindow
  onSeek(seconds: number): void
  onLoop(loop: Loop): void
}

const mostLabels = 10
/** Room for one label, with some air. */
const labelPixels = 70

/** The time scale that all lanes share. A drag on it marks a loop, as on the lanes. */
export function Ruler({ view, onSeek, onLoop }: RulerProps) {
  const gestures = usePictureGestures(view, onSeek, onLoop)
  const length = view.to - view.from
  const step = rulerStep(length, Math.max(3, Math.min(mostLabels, Math.floor(innerWidth / labelPixels))))
  const first = Math.ceil(view.from / step) * step
  const ticks = Array.from({ length: Math.floor((view.to - first) / step) + 1 }, (_, index) => first + index * step)
  // A label that the end would cut off says nothing.
  if (ticks.length > 1 && ((view.to - (ticks.at(-1) ?? 0)) / length) * innerWidth < labelPixels) ticks.pop()
  return (
    <div class="ruler" aria-hidden="true" {...gestures}>
      {ticks.map((seconds) => (
        <span key={seconds} class="tick" style={{ left: `${((seconds - view.from) / length) * 100}%` }}>
          {step < 1 ? `${clock(seconds)}.${Math.round((seconds % 1) * 10)}` : clock(seconds)}
        </span>
      ))}
      <span class="loop-area" />
      <span class="playhead" />
    </div>
  )
}
