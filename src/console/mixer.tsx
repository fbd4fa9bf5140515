import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import { Lane, type LaneSettings, type LaneView } from './lane.js'
import { Player } from './player.js'
import { ErrorNotice } from './error-notice.js'
import type { Stem } from './stems.js'
import { clock, explain, type Explanation } from './words.js'

const stepSeconds = 5
const untouched: LaneSettings = { isMuted: false, isSolo: false, volume: 1 }

/** Plays the stems together. Space plays, the arrow keys seek, digits mute (with Shift: solo). */
export function Mixer({ stems }: { stems: readonly Stem[] }) {
  const [, redraw] = useReducer((turn: number) => turn + 1, 0)
  const [problem, setProblem] = useState<Explanation>()
  const [view, setView] = useState<LaneView>('waveform')
  const [settings, setSettings] = useState<Record<string, LaneSettings>>({})
  const player = useMemo(
    () => new Player(stems, { onChange: () => redraw(undefined), onError: (error) => setProblem(explain(error)) }),
    [stems],
  )
  const lanes = useRef<HTMLDivElement>(null)
  const slider = useRef<HTMLInputElement>(null)
  const time = useRef<HTMLSpanElement>(null)
  useEffect(() => () => player.close(), [player])

  const of = (name: string) => settings[name] ?? untouched
  const hasSolo = stems.some(({ name }) => of(name).isSolo)
  const isHeard = (name: string) => (hasSolo ? of(name).isSolo : !of(name).isMuted)
  for (const { name } of stems) player.setVolume(name, isHeard(name) ? of(name).volume ** 2 : 0)
  // From the newest settings, not from the painted ones: keys may come faster than frames.
  const change = (name: string, changesOf: (now: LaneSettings) => Partial<LaneSettings>) =>
    setSettings((all) => {
      const now = all[name] ?? untouched
      return { ...all, [name]: { ...now, ...changesOf(now) } }
    })

  const show = () => {
    const { position, duration } = player
    // By way of the style object, which a strict policy allows.
    lanes.current?.style.setProperty('--played', String(position / duration))
    if (time.current) time.current.textContent = clock(position)
    if (!slider.current) return
    slider.current.value = String(position)
    slider.current.style.setProperty('--played', String(position / duration))
    slider.current.setAttribute('aria-valuetext', `${clock(position)} of ${clock(duration)}`)
  }
  useEffect(() => {
    show()
    if (!player.isPlaying) return
    let frame = requestAnimationFrame(function tick() {
      show()
      frame = requestAnimationFrame(tick)
    })
    return () => cancelAnimationFrame(frame)
  })

  const toggle = () => {
    setProblem(undefined)
    if (player.isPlaying) player.pause()
    else player.play()
  }
  // Before it is painted, so that no key is lost which is pressed as soon as the player is seen.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement
      // Keys that mean something to the element in focus stay with it.
      const isTaken =
        target.closest('input:not([type=range]), select, dialog, a, summary') ||
        (target.matches('[type=range]') && event.key.startsWith('Arrow'))
      const isPress = target.closest('button')
      if (event.altKey || event.ctrlKey || event.metaKey || isTaken) return
      const digit = /^Digit([1-9])$/.exec(event.code)?.[1]
      const lane = digit === undefined ? undefined : stems[Number(digit) - 1]
      if (event.key === ' ' && !isPress) toggle()
      else if (event.key === 'ArrowLeft') player.seek(player.position - stepSeconds)
      else if (event.key === 'ArrowRight') player.seek(player.position + stepSeconds)
      else if (lane && event.shiftKey) change(lane.name, ({ isSolo }) => ({ isSolo: !isSolo }))
      else if (lane) change(lane.name, ({ isMuted }) => ({ isMuted: !isMuted }))
      else return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  })

  return (
    <section class="card mixer" aria-label="Listen">
      <div class="transport">
        <button
          type="button"
          class="play"
          aria-label={player.isPlaying ? 'Pause' : 'Play'}
          aria-busy={player.isWaiting}
          onClick={toggle}
        >
          <svg viewBox="0 0 24 24" aria-hidden="true">
            <path d={player.isPlaying ? 'M7 5h3.5v14H7zM13.5 5H17v14h-3.5z' : 'M8 5v14l11-7z'} />
          </svg>
        </button>
        <span class="figure">
          <span ref={time}>{clock(player.position)}</span>
          <span class="quiet"> / {clock(player.duration)}</span>
        </span>
        <input
          ref={slider}
          class="seek"
          type="range"
          min={0}
          max={player.duration}
          step="any"
          aria-label="Position"
          onInput={(event) => player.seek(Number(event.currentTarget.value))}
          onKeyDown={(event) => {
            // With a step of "any", the arrow keys of browsers differ.
            const seconds = {
              ArrowLeft: -stepSeconds,
              ArrowDown: -stepSeconds,
              ArrowRight: stepSeconds,
              ArrowUp: stepSeconds,
            }[event.key]
            if (seconds === undefined) return
            event.preventDefault()
            player.seek(player.position + seconds)
          }}
        />
        <fieldset class="segments">
          <legend class="hidden">View</legend>
          {(['waveform', 'spectrogram'] as const).map((one) => (
            <label key={one}>
              <input type="radio" name="view" checked={view === one} onChange={() => setView(one)} />
              <span>{one === 'waveform' ? 'Waveform' : 'Spectrogram'}</span>
            </label>
          ))}
        </fieldset>
      </div>
      {problem && <ErrorNotice problem={problem} />}
      <div class="lanes" ref={lanes}>
        {stems.map((stem) => (
          <Lane
            key={stem.name}
            stem={stem}
            view={view}
            settings={of(stem.name)}
            isHeard={isHeard(stem.name)}
            onChange={(changes) => change(stem.name, () => changes)}
            onSeek={(share) => player.seek(share * player.duration)}
          />
        ))}
      </div>
      <p class="quiet keys">
        <kbd>Space</kbd> play · <kbd>←</kbd> <kbd>→</kbd> seek · <kbd>1</kbd> <kbd>2</kbd> mute · <kbd>Shift</kbd> +
        digit solo
      </p>
    </section>
  )
}
