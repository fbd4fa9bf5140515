import { useEffect, useState } from 'preact/hooks'
import { headroom } from './headroom.js'
import type { LaneSettings } from './lane.js'
import { clickName, type Player } from '../player/player.js'
import { isWholeSong } from '../words/stem-names.js'
import type { Stem } from '../sources/stems.js'

const untouched: LaneSettings = { isMuted: false, isSolo: false, volume: 1, pan: 0 }
/** Muted at first beside accompaniments: the guide contains them, too, and the click is optional. */
const mutedAtFirst = ['guide', 'click']
const masterStep = 0.05
const clickVolume = 0.5
/** Maximum rounding error of the service's peaks. */
const peakStep = 1 / 128

/** In the original nothing is muted; the settings of the mix are kept. */
function inOriginal(set: LaneSettings): LaneSettings {
  return { ...set, isMuted: false, isSolo: false }
}

/** Gain and pan of a track in the mix. */
export interface TrackMix {
  /** Factor of its samples, without the master volume. */
  gain: number
  pan: number
}

/** The person's settings, and the resulting mix of each track. */
export interface MixSettings {
  of(name: string): LaneSettings
  change(name: string, changesOf: (now: LaneSettings) => Partial<LaneSettings>): void
  isHeard(name: string): boolean
  tracks: Record<string, TrackMix>
  isOriginal: boolean
  setOriginal(isOriginal: boolean | ((now: boolean) => boolean)): void
  masterVolume: number
  setMasterVolume(volume: number): void
  louder(steps: number): void
  /** The settings, to be stored. */
  lanes: Record<string, LaneSettings>
}

interface KeptMix {
  lanes?: Record<string, LaneSettings>
  masterVolume?: number
  isClicking: boolean
}

export function useMixSettings(player: Player, stems: readonly Stem[], kept: KeptMix): MixSettings {
  const names = stems.map(({ name }) => name)
  const [settings, setSettings] = useState(kept.lanes ?? {})
  const [isOriginal, setOriginal] = useState(false)
  const [masterVolume, setMasterVolume] = useState(kept.masterVolume ?? 1)
  const highest = useHighest(stems)
  const first = (name: string) => ({
    ...untouched,
    isMuted: mutedAtFirst.includes(name) && names.includes('accompaniments'),
  })
  const of = (name: string) => {
    const set = settings[name] ?? first(name)
    return isOriginal ? inOriginal(set) : set
  }
  const hasSolo = names.some((name) => of(name).isSolo)
  const isHeard = (name: string) => isOriginal || (hasSolo ? of(name).isSolo : !of(name).isMuted)
  const heard = (name: string): TrackMix => {
    if (isOriginal) return { gain: 1, pan: 0 }
    const { volume, pan } = of(name)
    // Squared, because the ear hears loudness in ratios.
    return { gain: isHeard(name) ? volume ** 2 : 0, pan }
  }
  const tracks = Object.fromEntries(names.map((name) => [name, heard(name)]))
  // As a metronome, the click has no lane.
  tracks[clickName] = { gain: clickVolume, pan: 0 }
  useEffect(() => {
    const all = names.map((name) => ({ ...heard(name), highest: highest[name] }))
    for (const [name, { gain, pan }] of Object.entries(tracks)) player.setVolume(name, gain, pan)
    const room = headroom(all, isWholeSong(names)) / (kept.isClicking ? 1 + clickVolume : 1)
    player.setMasterVolume(masterVolume ** 2 * room)
  })
  return {
    of,
    isHeard,
    tracks,
    isOriginal,
    setOriginal,
    masterVolume,
    setMasterVolume,
    louder: (steps) => setMasterVolume((now) => Math.max(0, Math.min(1, now + steps * masterStep))),
    lanes: settings,
    // From the latest settings, not from the rendered ones: keys may come faster than frames.
    change(name, changesOf) {
      setOriginal(false)
      setSettings((all) => {
        const now = all[name] ?? first(name)
        return { ...all, [name]: { ...now, ...changesOf(isOriginal ? inOriginal(now) : now) } }
      })
    },
  }
}

/** The highest samples of each stem, as soon as they are known. */
function useHighest(stems: readonly Stem[]): Record<string, Float32Array> {
  const [known, setKnown] = useState<Record<string, Float32Array>>({})
  useEffect(() => {
    let isGone = false
    for (const { name, peaks } of stems)
      peaks.then(
        ({ lowest, highest }) => {
          const either = highest.map((high, index) => Math.max(high, -(lowest[index] ?? 0)) + peakStep)
          if (!isGone) setKnown((all) => ({ ...all, [name]: either }))
        },
        () => undefined,
      )
    return () => void (isGone = true)
  }, [stems])
  return known
}
