import { keyNames } from './note-picture.js'
import { usePictureGestures } from './picture-gestures.js'
import type { Loop } from '../player/player.js'
import type { SongRhythm } from '../player/rhythm.js'
import { rulerStep, type ViewWindow } from './view-window.js'
import { clock } from '../words/words.js'

interface RulerProps {
  view: ViewWindow
  onSeek(seconds: number): void
  onLoop(loop: Loop): void
}

const mostLabels = 10
/** Width of a label, with some space. */
const labelPixels = 56
const chordPixels = 34

/** Width of the scales, which is known once one is shown. */
function scalePixels(): number {
  return document.querySelector('.ruler')?.clientWidth || innerWidth
}

/** The time scale that all lanes share. A drag on it marks a loop, as on the lanes. */
export function Ruler(props: RulerProps) {
  const { from, to } = props.view
  const length = to - from
  const step = rulerStep(length, Math.max(3, Math.min(mostLabels, Math.floor(scalePixels() / labelPixels))))
  const first = Math.ceil(from / step) * step
  const ticks = Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, index) => first + index * step)
  // A label that would be cut off at the end is left out.
  if (ticks.length > 1 && ((to - (ticks.at(-1) ?? 0)) / length) * scalePixels() < labelPixels) ticks.pop()
  const words = (seconds: number) => (step < 1 ? `${clock(seconds)}.${Math.round((seconds % 1) * 10)}` : clock(seconds))
  return <Scale {...props} labels={ticks.map((at) => ({ at, text: words(at) }))} />
}

interface ChordsProps extends RulerProps {
  chords: NonNullable<SongRhythm['chords']>
  /** Semitones by which they are transposed. */
  semitones: number
}

/** The chords in view, except those too short for their name. Their row is there before they are known. */
export function Chords({ chords, semitones, ...props }: ChordsProps) {
  const { from, to } = props.view
  const labels = chords
    .map(({ name, start, end }) => ({ name, at: Math.max(from, start), end: Math.min(to, end) }))
    .filter(({ name, at, end }) => name !== 'N' && ((end - at) / (to - from)) * scalePixels() >= chordPixels)
    .map(({ name, at }) => ({ at, text: transposed(name, semitones) }))
  const words = labels.map(({ at, text }) => `${text} at ${clock(Math.round(at))}`).join(', ')
  return <Scale {...props} labels={labels} words={`Chords: ${words || 'not known'}`} />
}

function transposed(chord: string, semitones: number): string {
  return chord
    .replace('#', '♯')
    .replace(/^[A-G]♯?/, (root) => keyNames.at((keyNames.indexOf(root) + semitones) % keyNames.length) ?? root)
}

interface ScaleProps extends RulerProps {
  labels: readonly { at: number; text: string }[]
  /** The labels as text for screen readers, if nothing else conveys them. */
  words?: string
}

function Scale({ view, onSeek, onLoop, labels, words }: ScaleProps) {
  const gestures = usePictureGestures(view, onSeek, onLoop)
  const place = (seconds: number) => `${((seconds - view.from) / (view.to - view.from)) * 100}%`
  return (
    <div class="ruler" {...(words ? { role: 'img', 'aria-label': words } : { 'aria-hidden': true })} {...gestures}>
      {labels.map(({ at, text }) => (
        <span key={at} class="tick" style={{ left: place(at) }}>
          {text}
        </span>
      ))}
      <span class="loop-area" />
      <span class="playhead" />
    </div>
  )
}
