import type { Loop, Player } from '../player/player.js'

const stepSeconds = 5
const silenceSeconds = 10
const silenceRate = 8000

export interface HeardSong {
  title: string
  artist: string | undefined
}

/** The loops that the person has kept, in order, and how to play one. */
export interface KeptLoops {
  loops: readonly Loop[]
  onLoop(loop: Loop): void
}

/**
 * Lets media keys, headphones and the lock screen play, pause and seek, and go from one kept loop to the next one.
 *
 * @returns `tell`, to be called at each change, and `close`
 */
export function openMediaKeys(player: Player, song: HeardSong): { tell(kept: KeptLoops): void; close(): void } {
  const { mediaSession } = navigator
  // Browsers show the controls only for an element that plays, so a silent one plays along.
  const address = URL.createObjectURL(silence())
  const element = new Audio(address)
  element.loop = true
  let kept: KeptLoops = { loops: [], onLoop: () => undefined }
  const toNext = () => {
    const { from } = player.loop ?? { from: player.position }
    const next = kept.loops.find((loop) => loop.from > from) ?? kept.loops[0]
    if (next) kept.onLoop(next)
  }
  const toPrevious = () => {
    const { from } = player.loop ?? { from: player.position }
    const previous = kept.loops.findLast((loop) => loop.from < from)
    if (previous) kept.onLoop(previous)
    else player.seek(0)
  }
  const step = (seconds: number) => player.seek(player.position + seconds)
  const handlers: Partial<Record<MediaSessionAction, MediaSessionActionHandler>> = {
    play: () => player.play(),
    pause: () => player.pause(),
    stop: () => {
      player.pause()
      player.seek(0)
    },
    previoustrack: toPrevious,
    nexttrack: toNext,
    seekbackward: ({ seekOffset }) => step(-(seekOffset ?? stepSeconds)),
    seekforward: ({ seekOffset }) => step(seekOffset ?? stepSeconds),
    seekto: ({ seekTime }) => player.seek(seekTime ?? 0),
  }
  const setHandlers = (areOn: (action: string) => boolean) => {
    for (const [action, handler] of Object.entries(handlers))
      mediaSession.setActionHandler(action as MediaSessionAction, areOn(action) ? handler : null)
  }
  mediaSession.metadata = new MediaMetadata({
    title: song.title,
    artist: song.artist,
    artwork: [{ src: new URL('icon.svg', import.meta.url).href, sizes: 'any', type: 'image/svg+xml' }],
  })
  return {
    tell(now) {
      kept = now
      // Browsers do not show a button without a handler.
      setHandlers((action) => action !== 'nexttrack' || kept.loops.length > 0)
      const { isPlaying, duration, position, tempo } = player
      // Rejects where sound is not allowed yet.
      if (isPlaying) element.play().catch(() => undefined)
      else element.pause()
      mediaSession.playbackState = isPlaying ? 'playing' : 'paused'
      mediaSession.setPositionState({ duration, position: Math.min(position, duration), playbackRate: tempo })
    },
    close() {
      element.pause()
      URL.revokeObjectURL(address)
      setHandlers(() => false)
      mediaSession.metadata = null
      mediaSession.playbackState = 'none'
    },
  }
}

/** As an 8-bit WAV file. */
function silence(): Blob {
  const bytes = silenceSeconds * silenceRate
  const view = new DataView(new ArrayBuffer(44 + bytes))
  const samples = new Uint8Array(view.buffer)
  const ascii = (at: number, text: string) => samples.set(new TextEncoder().encode(text), at)
  ascii(0, 'RIFF')
  ascii(8, 'WAVEfmt ')
  ascii(36, 'data')
  view.setUint32(4, 36 + bytes, true)
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true)
  view.setUint16(22, 1, true)
  view.setUint32(24, silenceRate, true)
  view.setUint32(28, silenceRate, true)
  view.setUint16(32, 1, true)
  view.setUint16(34, 8, true)
  view.setUint32(40, bytes, true)
  samples.fill(128, 44)
  return new Blob([view.buffer], { type: 'audio/wav' })
}
