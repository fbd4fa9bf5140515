import type { RefObject } from 'preact'
import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import { ErrorNotice } from './error-notice.js'
import { ExportButton } from './export-button.js'
import { Lane, type LaneView } from './lane.js'
import { useMessages } from './messages.js'
import { type MixSettings, useMixSettings } from './mix-settings.js'
import { keyTexts, useMixerKeys } from './mixer-keys.js'
import { shareText } from './picture-gestures.js'
import { type Loop, Player } from './player.js'
import { Ruler } from './ruler.js'
import { isWholeSong, type Stem } from './stems.js'
import { speeds, Transport } from './transport.js'
import { following, moved, type ViewWindow, zoomed } from './view-window.js'
import { clock, explain, type Explanation, outputWords } from './words.js'

/** Plays the stems together. */
export function Mixer({ stems, song }: { stems: readonly Stem[]; song: string }) {
  const [problem, setProblem] = useState<Explanation>()
  const [picture, setPicture] = useState<LaneView>('waveform')
  const { announce } = useMessages()
  const { player, redraw } = usePlayer(stems, (error) => setProblem(explain(error)))
  const { duration, loop } = player
  const [view, setView] = useView(duration)
  const names = stems.map(({ name }) => name)
  const mix = useMixSettings(player, names)
  const { lanes, slider, time } = useFrames(player, view, setView)

  const toggle = () => {
    setProblem(undefined)
    if (player.isPlaying) player.pause()
    else player.play()
  }
  const setLoop = (next: Loop | undefined) => {
    player.setLoop(next)
    redraw()
    announce(next ? `Loop from ${clock(next.from)} to ${clock(next.to)}` : 'Loop removed')
  }
  const zoom = (factor: number) => setView((now) => zoomed(now, factor, player.position, duration))
  useMixerKeys({ toggle, zoom, ...playbackKeys(player, { announce, setLoop }), ...laneKeys(mix, names, announce) })

  return (
    <section class="card mixer" aria-label="Listen">
      <Transport
        player={player}
        time={time}
        slider={slider}
        picture={picture}
        onPicture={setPicture}
        mix={mix}
        hasOriginal={isWholeSong(names)}
        onToggle={toggle}
        onZoom={zoom}
      />
      {problem && <ErrorNotice problem={problem} />}
      <Lanes
        lanes={lanes}
        stems={stems}
        player={player}
        mix={mix}
        picture={picture}
        view={view}
        onView={setView}
        onLoop={setLoop}
        onZoom={zoom}
      />
      <div class="line below">
        <LoopNote
          loop={loop}
          isGrowing={stems.some(({ source }) => source.isGrowing)}
          onEnd={() => setLoop(undefined)}
        />
        <ExportButton stems={stems} song={song} gains={mix.gains} part={loop ?? { from: 0, to: duration }} />
      </div>
      <Shortcuts />
    </section>
  )
}

interface LanesProps {
  lanes: RefObject<HTMLDivElement | null>
  stems: readonly Stem[]
  player: Player
  mix: MixSettings
  picture: LaneView
  view: ViewWindow
  onView(view: ViewWindow): void
  onLoop(loop: Loop | undefined): void
  onZoom(factor: number): void
}

function Lanes({ lanes, stems, player, mix, picture, view, onView, onLoop, onZoom }: LanesProps) {
  const { duration } = player
  const seek = (seconds: number) => player.seek(seconds)
  return (
    <div
      class="lanes"
      ref={lanes}
      onWheel={(event) => {
        if (!event.ctrlKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return
        event.preventDefault()
        const length = view.to - view.from
        if (event.ctrlKey) onZoom(event.deltaY < 0 ? 1.25 : 0.8)
        else onView(moved(view, (event.deltaX / 800) * length, duration))
      }}
    >
      <Ruler view={view} onSeek={seek} onLoop={onLoop} />
      {stems.map((stem, index) => (
        <Lane
          key={stem.name}
          stem={stem}
          digit={index + 1}
          picture={picture}
          view={view}
          duration={duration}
          settings={mix.of(stem.name)}
          isHeard={mix.isHeard(stem.name)}
          onChange={(changes) => mix.change(stem.name, () => changes)}
          onSeek={seek}
          onLoop={onLoop}
        />
      ))}
    </div>
  )
}

/** When the finished stems replace the growing ones, the music goes on as it was. */
function usePlayer(stems: readonly Stem[], onError: (error: unknown) => void) {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const player = useMemo(() => new Player(stems, { onChange: () => redraw(undefined), onError }), [stems])
  const heard = useRef<Pick<Player, 'position' | 'speed' | 'loop' | 'isPlaying'>>(undefined)
  useEffect(() => {
    const { position = 0, speed = 1, loop, isPlaying = false } = heard.current ?? {}
    if (speed !== 1) player.setSpeed(speed)
    if (position > 0) player.seek(position)
    if (loop) player.setLoop(loop)
    if (isPlaying) player.play()
    return () => {
      heard.current = {
        position: player.position,
        speed: player.speed,
        loop: player.loop,
        isPlaying: player.isPlaying,
      }
      player.close()
    }
  }, [player])
  return { player, redraw: () => redraw(undefined) }
}

function useView(duration: number) {
  const [view, setView] = useState<ViewWindow>({ from: 0, to: duration })
  const shownDuration = useRef(duration)
  useEffect(() => {
    // Who sees the end goes on seeing it.
    const hadEnd = view.to >= shownDuration.current
    shownDuration.current = duration
    setView((now) => (hadEnd ? { from: now.from, to: duration } : moved(now, 0, duration)))
  }, [duration])
  return [view, setView] as const
}

/** Shows the position at once, and with each frame of the screen while it plays. */
function useFrames(player: Player, view: ViewWindow, setView: (change: (now: ViewWindow) => ViewWindow) => void) {
  const lanes = useRef<HTMLDivElement>(null)
  const slider = useRef<HTMLInputElement>(null)
  const time = useRef<HTMLSpanElement>(null)
  const show = () => {
    const { position, duration } = player
    if (player.isPlaying) setView((now) => following(now, position, duration))
    showLanes(lanes.current, player, view)
    showPosition({ time: time.current, slider: slider.current }, player)
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
  return { lanes, slider, time }
}

function showLanes(lanes: HTMLElement | null, player: Player, view: ViewWindow): void {
  if (!lanes) return
  const { position, loop } = player
  // By way of the style object, which a strict policy allows.
  const { style } = lanes
  style.setProperty('--played', shareText(position, view))
  style.setProperty('--playhead', position < view.from || position > view.to ? 'none' : 'block')
  style.setProperty('--loop-from', loop ? shareText(loop.from, view) : '0')
  style.setProperty('--loop-to', loop ? shareText(loop.to, view) : '0')
  for (const meter of lanes.querySelectorAll<HTMLElement>('[data-meter]'))
    meter.style.setProperty('--level', String(Math.min(1, player.level(meter.dataset.meter ?? ''))))
}

interface PositionElements {
  time: HTMLElement | null
  slider: HTMLInputElement | null
}

function showPosition({ time, slider }: PositionElements, { position, duration }: Player): void {
  if (time) time.textContent = clock(position)
  if (!slider) return
  slider.value = String(position)
  slider.setAttribute('aria-valuetext', `${clock(position)} of ${clock(duration)}`)
}

interface PlaybackOptions {
  announce(text: string): void
  setLoop(loop: Loop | undefined): void
}

function playbackKeys(player: Player, { announce, setLoop }: PlaybackOptions) {
  const { duration, loop } = player
  return {
    step: (seconds: number) => player.seek(player.position + seconds),
    toStart: () => player.seek(0),
    toEnd: () => player.seek(duration),
    loopFrom: () => setLoop({ from: player.position, to: loop && loop.to > player.position ? loop.to : duration }),
    loopTo: () => setLoop({ from: loop && loop.from < player.position ? loop.from : 0, to: player.position }),
    endLoop: () => setLoop(undefined),
    faster(steps: number) {
      const at = speeds.findIndex((speed) => speed === player.speed) + steps
      const speed = speeds[Math.max(0, Math.min(speeds.length - 1, at))] ?? 1
      player.setSpeed(speed)
      announce(`Speed ${speed}`)
    },
  }
}

function laneKeys(mix: MixSettings, names: readonly string[], announce: (text: string) => void) {
  const laneNamed = (index: number, act: (name: string) => void) => {
    const name = names[index]
    if (name !== undefined) act(name)
  }
  return {
    mute: (index: number) =>
      laneNamed(index, (name) => {
        announce(`${outputWords(name)} ${mix.of(name).isMuted ? 'on' : 'muted'}`)
        mix.change(name, ({ isMuted }) => ({ isMuted: !isMuted }))
      }),
    solo: (index: number) =>
      laneNamed(index, (name) => {
        announce(`${outputWords(name)} solo ${mix.of(name).isSolo ? 'off' : 'on'}`)
        mix.change(name, ({ isSolo }) => ({ isSolo: !isSolo }))
      }),
    original: () => isWholeSong(names) && mix.setOriginal((now) => !now),
    louder: mix.louder,
  }
}

function LoopNote({ loop, isGrowing, onEnd }: { loop: Loop | undefined; isGrowing: boolean; onEnd(): void }) {
  return (
    <span class="quiet">
      {isGrowing && 'Finished so far. The rest is added as it is made. '}
      {loop ? (
        <>
          Loop {clock(loop.from)} to {clock(loop.to)}{' '}
          <button type="button" class="plain" onClick={onEnd}>
            Remove loop
          </button>
        </>
      ) : (
        !isGrowing && 'Drag across a waveform to loop a part.'
      )}
    </span>
  )
}

function Shortcuts() {
  return (
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
  )
}
