import type { LaneSettings } from './lane.js'
import type { Loop } from '../player/player.js'
import type { SongRhythm } from '../player/rhythm.js'

export interface NamedLoop extends Loop {
  name: string
}

/** A person's settings for a song. */
export interface KeptSong {
  lanes: Record<string, LaneSettings>
  masterVolume: number
  tempo: number
  semitones: number
  loop?: Loop
  loops: NamedLoop[]
  rhythm?: SongRhythm
  beats: BeatSwitches
}

/** Switches for the beats. */
export interface BeatSwitches {
  isSnapping: boolean
  isClicking: boolean
  isCountedIn: boolean
}

const prefix = 'stemwork.song '
/** How many of the most recently played songs are kept. */
const mostSongs = 40

/** Settings for a job that this device has kept, in case the page is loaded again. */
export function keptSong(jobId: string): Partial<KeptSong> {
  try {
    return JSON.parse(localStorage.getItem(prefix + jobId) ?? '{}') as Partial<KeptSong>
  } catch {
    return {}
  }
}

export function keepSong(jobId: string, changes: Partial<KeptSong>): void {
  const at = Date.now()
  try {
    localStorage.setItem(prefix + jobId, JSON.stringify({ ...keptSong(jobId), ...changes, at }))
  } catch {
    // Storage is full, or forbidden: the song is played anyway.
  }
  const ages = Object.keys(localStorage).flatMap((name) => {
    if (!name.startsWith(prefix)) return []
    const { at: age = 0 } = keptSong(name.slice(prefix.length)) as { at?: number }
    return [{ name, age }]
  })
  ages.sort((one, other) => other.age - one.age)
  for (const { name } of ages.slice(mostSongs)) localStorage.removeItem(name)
}
