import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import { useRedraws } from '../elements/canvas.js'
import { ErrorNotice } from '../elements/error-notice.js'
import { drawNotes, keyName, keysOf } from '../pictures/note-picture.js'
import { type Note, NotePlayer } from '../player/note-player.js'
import { usePictureGestures } from '../pictures/picture-gestures.js'
import { PlayButton } from '../elements/play-button.js'
import type { ResultFiles } from '../sources/result-files.js'
import { Ruler } from '../pictures/ruler.js'
import { useShownPosition } from '../pictures/shown-position.js'
import { stemColour } from '../words/stem-names.js'
import { useAnswer } from '../elements/use-answer.js'
import { type ViewWindow, zoomed } from '../pictures/view-window.js'
import { explain, type Explanation, outputWords } from '../words/words.js'
import { ZoomButtons } from '../elements/zoom-buttons.js'

/** Result of `service/notes`. */
interface NotesReport {
  seconds: number
  tempo: number
  tracks: { name: string; notes: Note[] }[]
}

/** Shows and plays the notes that a job has found. */
export function PianoRoll({ files }: { files: ResultFiles }) {
  const [problem, setProblem] = useState<Explanation>()
  const report = useAnswer(
    (signal) => files.json<NotesReport>('notes', signal),
    [files],
    (error) => setProblem(explain(error)),
  )
  if (problem) return <ErrorNotice problem={problem} />
  return report ? <Roll report={report} /> : <p class="quiet">Loading …</p>
}

type Track = NotesReport['tracks'][number]

function Roll({ report: { seconds, tempo, tracks } }: { report: NotesReport }) {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const [off, setOff] = useState<readonly string[]>([])
  const [view, setView] = useState<ViewWindow>({ from: 0, to: seconds })
  const player = useMemo(() => new NotePlayer(seconds, () => redraw(undefined)), [tracks])
  useEffect(() => () => player.close(), [player])
  const on = useMemo(() => tracks.filter(({ name }) => !off.includes(name)), [tracks, off])
  useEffect(() => player.setNotes(on.flatMap(({ notes }) => notes)), [player, on])
  const keys = useMemo(() => keysOf(tracks.flatMap(({ notes }) => notes)), [tracks])
  const canvas = useRef<HTMLCanvasElement>(null)
  const section = useRef<HTMLElement>(null)
  const seek = (to: number) => player.seek(to)
  const gestures = usePictureGestures(view, seek, setView)
  const layers = on.map(({ name, notes }) => ({ colour: stemColour(name), notes }))
  useRedraws(canvas, () => canvas.current && drawNotes(canvas.current, layers, keys, view), [view, on])
  useShownPosition(section, player, view, setView)

  const count = tracks.reduce((sum, { notes }) => sum + notes.length, 0)
  const range = `${keyName(keys.lowest)} to ${keyName(keys.highest)}`
  return (
    <section class="card mixer roll" aria-label="Notes" ref={section}>
      <NoteTransport player={player} />
      <div class="tools">
        <Tracks tracks={tracks} off={off} onChange={setOff} />
        <ZoomButtons onZoom={(factor) => setView((now) => zoomed(now, factor, player.position, seconds))} />
      </div>
      <div class="lanes">
        <Ruler view={view} onSeek={seek} onLoop={setView} />
        <div class="picture" {...gestures}>
          <canvas ref={canvas} role="img" aria-label={`${count} notes from ${range}, ${Math.round(tempo)} bpm`} />
          <span class="loop-area" />
          <span class="playhead" />
        </div>
      </div>
      <p class="quiet">Drag across the notes to zoom in.</p>
    </section>
  )
}

function NoteTransport({ player }: { player: NotePlayer }) {
  return (
    <div class="transport">
      <PlayButton isPlaying={player.isPlaying} onToggle={() => (player.isPlaying ? player.pause() : player.play())} />
      <input
        class="seek"
        type="range"
        min={0}
        max={player.duration}
        step="any"
        aria-label="Position"
        onInput={(event) => player.seek(Number(event.currentTarget.value))}
      />
    </div>
  )
}

interface TracksProps {
  tracks: readonly Track[]
  off: readonly string[]
  onChange(off: readonly string[]): void
}

/** Checkboxes for the tracks to show and play. */
function Tracks({ tracks, off, onChange }: TracksProps) {
  return tracks.map(({ name, notes }) => (
    <label key={name} class="check" style={{ accentColor: `var(--${stemColour(name)})` }}>
      <input
        type="checkbox"
        checked={!off.includes(name)}
        onChange={() => onChange(off.includes(name) ? off.filter((one) => one !== name) : [...off, name])}
      />
      {outputWords(name)} ({notes.length})
    </label>
  ))
}
