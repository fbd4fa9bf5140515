import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import { ErrorNotice } from '../elements/error-notice.js'
import { ExportButton } from './export-button.js'
import { keepSong, keptSong } from './kept-songs.js'
import { Lane, type LaneView } from './lane.js'
import { Loops } from './loops.js'
import { useMessages } from '../elements/messages.js'
import { useMixSettings } from './mix-settings.js'
import { keyTexts, useFocusBack, useMixerKeys } from './mixer-keys.js'
import type { PcmSource } from '../sources/pcm-source.js'
import { type Loop, Player } from '../player/player.js'
import { Chords, Ruler } from '../pictures/ruler.js'
import { isWholeSong } from '../words/stem-names.js'
import type { Stem } from '../sources/stems.js'
import { changeTempo, changeSemitones, Practice } from './practice.js'
import { Transport } from './transport.js'
import type { SongRhythm } from '../player/rhythm.js'
import { useRhythm } from './use-rhythm.js'
import { useMediaKeys } from './use-media-keys.js'
import { useWakeLock } from './use-wake-lock.js'
import { useShownPosition } from '../pictures/shown-position.js'
import { moved, type ViewWindow, zoomed } from '../pictures/view-window.js'
import { clock, explain, type Explanation, outputWords } from '../words/words.js'

interface MixerProps {
  stems: readonly Stem[]
  song: string
  artist?: string
  /** Rhythm that the job has found. */
  found?: SongRhythm
  /** The original song, played where its stems are not made yet. */
  whole?: PcmSource
  /** Undefined before the job exists. */
  jobId: string | undefined
  /** Progress of a job that has not ended. */
  work?: ComponentChildren
  /** Called with the known rhythm, at first and when one is found. */
  onRhythm?(rhythm: SongRhythm | undefined): void
}

/** Plays the stems together. */
export function Mixer({ stems, song, artist, found, whole, jobId, work, onRhythm }: MixerProps) {
  const kept = useMemo(() => (jobId === undefined ? {} : keptSong(jobId)), [])
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const [problem, setProblem] = useState<Explanation>()
  const [picture, setPicture] = useState<LaneView>('waveform')
  const { announce } = useMessages()
  const onError = (error: unknown) => setProblem(explain(error))
  const beats = useRhythm(stems, { kept, found, onError })
  const countIn = useRef(beats.countIn)
  countIn.current = beats.countIn
  useEffect(() => onRhythm?.(beats.rhythm), [beats.rhythm])
  const sampleRate = stems[0]?.source.sampleRate
  const player = useMemo(
    () =>
      new Player(beats.tracks, {
        onChange: () => redraw(undefined),
        onError,
        countIn: (position) => countIn.current(position),
        whole: whole?.sampleRate === sampleRate ? whole : undefined,
      }),
    [sampleRate],
  )
  useLayoutEffect(() => player.replace(beats.tracks), [player, beats.tracks])
  const isGrowing = stems.some(({ source }) => source.isGrowing)
  // A new player, at another rate, continues where the last one was.
  const heard = useRef<Pick<Player, 'position' | 'tempo' | 'semitones' | 'loop' | 'isPlaying'>>(undefined)
  useEffect(() => {
    const { tempo = 1, semitones = 0, loop: repeated } = heard.current ?? kept
    const { position = 0, isPlaying = false } = heard.current ?? {}
    if (tempo !== 1) player.setTempo(tempo)
    if (semitones !== 0) player.setSemitones(semitones)
    if (position > 0) player.seek(position)
    if (repeated) player.setLoop(repeated)
    if (isPlaying) player.play(false)
    return () => {
      const { position, tempo, semitones, loop, isPlaying } = player
      heard.current = { position, tempo, semitones, loop, isPlaying }
      player.close()
    }
  }, [player])
  const { duration } = player
  const [view, setView] = useState<ViewWindow>({ from: 0, to: duration })
  const shownDuration = useRef(duration)
  useEffect(() => {
    // If the end was in view, it stays in view.
    const hadEnd = view.to >= shownDuration.current
    shownDuration.current = duration
    setView((now) => (hadEnd ? { from: now.from, to: duration } : moved(now, 0, duration)))
  }, [duration])
  const names = stems.map(({ name }) => name)
  const mix = useMixSettings(player, stems, { ...kept, isClicking: beats.switches.isClicking })
  const [loops, setLoops] = useState(kept.loops ?? [])
  const saved = useRef('')
  useEffect(() => {
    const { tempo, semitones, loop } = player
    const { rhythm, switches } = beats
    const { lanes, masterVolume } = mix
    const now = { lanes, masterVolume, tempo, semitones, loop, loops, rhythm, beats: switches }
    const text = JSON.stringify(now)
    // Settings that have not changed since the song was opened need not be stored.
    if (saved.current !== '' && saved.current !== text && jobId !== undefined) keepSong(jobId, now)
    if (saved.current === '' || jobId !== undefined) saved.current = text
  })
  const section = useRef<HTMLElement>(null)
  useFocusBack(section)
  const { loop } = player
  useShownPosition(section, player, view, setView)

  const toggle = () => {
    setProblem(undefined)
    if (player.isPlaying) player.pause()
    else player.play()
  }
  const setLoop = (wanted: Loop | undefined, isKept = false) => {
    const next = wanted && !isKept ? beats.snapped(wanted) : wanted
    player.setLoop(next)
    redraw(undefined)
    announce(next ? `Loop from ${clock(next.from)} to ${clock(next.to)}` : 'Loop removed')
  }
  useWakeLock(player.isPlaying)
  useMediaKeys(player, { title: song, artist }, { loops, onLoop: (next) => setLoop(next, true) })
  const zoom = (factor: number) => setView((now) => zoomed(now, factor, player.position, duration))
  const laneNamed = (index: number, act: (name: string) => void) => {
    const name = names[index]
    if (name !== undefined) act(name)
  }
  useMixerKeys(section, {
    toggle,
    step: (seconds) => player.seek(player.position + seconds),
    toStart: () => player.seek(0),
    toEnd: () => player.seek(duration),
    mute: (index) =>
      laneNamed(index, (name) => {
        announce(`${outputWords(name)} ${mix.of(name).isMuted ? 'on' : 'muted'}`)
        mix.change(name, ({ isMuted }) => ({ isMuted: !isMuted }))
      }),
    solo: (index) =>
      laneNamed(index, (name) => {
        announce(`${outputWords(name)} solo ${mix.of(name).isSolo ? 'off' : 'on'}`)
        mix.change(name, ({ isSolo }) => ({ isSolo: !isSolo }))
      }),
    loopFrom: () => setLoop({ from: player.position, to: loop && loop.to > player.position ? loop.to : duration }),
    loopTo: () => setLoop({ from: loop && loop.from < player.position ? loop.from : 0, to: player.position }),
    endLoop: () => setLoop(undefined),
    zoom,
    faster: (steps) => announce(changeTempo(player, steps)),
    higher: (steps) => announce(changeSemitones(player, steps)),
    original: () => isWholeSong(names) && mix.setOriginal((now) => !now),
    louder: mix.louder,
  })

  return (
    <section ref={section} class="card mixer" aria-label="Listen" tabIndex={-1}>
      <Transport
        player={player}
        picture={picture}
        onPicture={setPicture}
        mix={mix}
        hasOriginal={isWholeSong(names)}
        onToggle={toggle}
        onZoom={zoom}
      />
      <Practice player={player} beats={beats} canFind={!isGrowing} />
      {problem && <ErrorNotice problem={problem} />}
      <div
        class="lanes"
        onWheel={(event) => {
          if (!event.ctrlKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return
          event.preventDefault()
          const length = view.to - view.from
          if (event.ctrlKey) zoom(event.deltaY < 0 ? 1.25 : 0.8)
          else setView(moved(view, (event.deltaX / 800) * length, duration))
        }}
      >
        <Ruler view={view} onSeek={(seconds) => player.seek(seconds)} onLoop={setLoop} />
        <Chords
          chords={beats.rhythm?.chords ?? []}
          semitones={player.semitones}
          view={view}
          onSeek={(seconds) => player.seek(seconds)}
          onLoop={setLoop}
        />
        {stems.map((stem, index) => (
          <Lane
            key={stem.name}
            stem={stem}
            rhythm={beats.rhythm}
            digit={index + 1}
            picture={picture}
            view={view}
            duration={duration}
            settings={mix.of(stem.name)}
            isHeard={mix.isHeard(stem.name)}
            onChange={(changes) => mix.change(stem.name, () => changes)}
            onSeek={(seconds) => player.seek(seconds)}
            onLoop={setLoop}
          />
        ))}
      </div>
      <div class="line below">
        <span class="quiet">
          {loop ? `Loop ${clock(loop.from)} to ${clock(loop.to)}` : 'Drag across a waveform to loop a part.'}
        </span>
        <Loops loop={loop} loops={loops} onLoop={(next) => setLoop(next, true)} onKeep={setLoops} />
        <ExportButton
          player={player}
          tracks={beats.tracks}
          song={song}
          mix={mix.tracks}
          part={{ from: loop?.from ?? 0, to: Math.min(loop?.to ?? Infinity, isGrowing ? Infinity : player.made) }}
        />
      </div>
      <details class="keys">
        <summary>Keyboard shortcuts</summary>
        <dl>
          {keyTexts.map(([keys, meaning]) => (
            <div key={keys}>
              <dt>
                <kbd>{keys}</kbd>
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
      </details>
      {/* Last, so that nothing above it moves when it disappears. */}
      {whole && isGrowing && <p class="quiet">Where stems are not ready yet, you hear the original.</p>}
      {work}
    </section>
  )
}
