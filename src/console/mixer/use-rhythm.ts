import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { BeatSwitches, KeptSong } from './kept-songs.js'
import { clickName, type CountIn, type Loop, type PlayerTrack } from '../player/player.js'
import { clicksOf, countInTo, onBeats, type SongRhythm } from '../player/rhythm.js'
import type { Stem } from '../sources/stems.js'

/** The beats of a song, once they are known, and the switches for their use. */
export interface Beats {
  rhythm: SongRhythm | undefined
  /** How much of the song is analysed; undefined while no analysis runs. */
  share: number | undefined
  /** Starts the analysis, or stops it. */
  find(): void
  switches: BeatSwitches
  change(switches: Partial<BeatSwitches>): void
  /** The stems, and the click track if it is wanted. */
  tracks: readonly PlayerTrack[]
  countIn(position: number): CountIn | undefined
  snapped(loop: Loop): Loop
}

const atFirst: BeatSwitches = { isSnapping: true, isClicking: false, isCountedIn: false }

interface BeatOptions {
  kept: Partial<KeptSong>
  /** Rhythm that the job has found. */
  found: SongRhythm | undefined
  onError(error: unknown): void
}

export function useRhythm(stems: readonly Stem[], { kept, found, onError }: BeatOptions): Beats {
  const [own, setRhythm] = useState(kept.rhythm)
  const rhythm = found ?? own
  const [switches, setSwitches] = useState(kept.beats ?? atFirst)
  const [share, setShare] = useState<number>()
  const stop = useRef(new AbortController())
  useEffect(() => () => stop.current.abort(), [])
  const { isSnapping, isClicking, isCountedIn } = switches
  const first = stems[0]?.source
  const canCount = rhythm !== undefined && rhythm.beats.length > 1
  const tracks = useMemo(() => {
    if (!canCount || !first || (!isClicking && !isCountedIn)) return stems
    const clicks = isClicking ? rhythm : { beats: [], bars: [] }
    return [...stems, { name: clickName, source: clicksOf(clicks, first) }]
  }, [stems, rhythm, isClicking, isCountedIn])

  const find = async () => {
    stop.current = new AbortController()
    const { signal } = stop.current
    setShare(0)
    try {
      const { findRhythm } = await import('./find-rhythm.js')
      setRhythm(await findRhythm(stems, { signal, onProgress: setShare }))
    } catch (error) {
      if (!signal.aborted) onError(error)
    } finally {
      setShare(undefined)
    }
  }
  return {
    rhythm,
    share,
    find: () => (share === undefined ? void find() : stop.current.abort()),
    switches,
    change: (changes) => setSwitches((now) => ({ ...now, ...changes })),
    tracks,
    countIn: (position) => (canCount && first && isCountedIn ? countInTo(position, rhythm, first) : undefined),
    snapped: (loop) => (rhythm && isSnapping ? onBeats(loop, rhythm) : loop),
  }
}
