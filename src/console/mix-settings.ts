import { useEffect, useState } from 'preact/hooks'
import type { LaneSettings } from './lane.js'
import type { Player } from './player.js'

const untouched: LaneSettings = { isMuted: false, isSolo: false, volume: 1 }
const masterStep = 0.05

/** In the original, nothing is muted; the mix keeps what was set. */
function inOriginal(set: LaneSettings): LaneSettings {
  return { ...set, isMuted: false, isSolo: false }
}

/** What the person has set, and how loud each track is for it. */
export interface MixSettings {
  of(name: string): LaneSettings
  change(name: string, changesOf: (now: LaneSettings) => Partial<LaneSettings>): void
  isHeard(name: string): boolean
  /** Factor of each track's samples, without the master volume. */
  gains: Record<string, number>
  isOriginal: boolean
  setOriginal(isOriginal: boolean | ((now: boolean) => boolean)): void
  masterVolume: number
  setMasterVolume(volume: number): void
  louder(steps: number): void
}

export function useMixSettings(player: Player, names: readonly string[]): MixSettings {
  const [settings, setSettings] = useState<Record<string, LaneSettings>>({})
  const [isOriginal, setOriginal] = useState(false)
  const [masterVolume, setMasterVolume] = useState(1)
  const of = (name: string) => {
    const set = settings[name] ?? untouched
    return isOriginal ? inOriginal(set) : set
  }
  const hasSolo = names.some((name) => of(name).isSolo)
  const isHeard = (name: string) => isOriginal || (hasSolo ? of(name).isSolo : !of(name).isMuted)
  // Squared, for the ear hears loudness by ratios.
  const gainOf = (name: string) => (isOriginal ? 1 : isHeard(name) ? of(name).volume ** 2 : 0)
  const gains = Object.fromEntries(names.map((name) => [name, gainOf(name)]))
  useEffect(() => {
    for (const [name, gain] of Object.entries(gains)) player.setVolume(name, gain)
    player.setMasterVolume(masterVolume ** 2)
  })
  return {
    of,
    isHeard,
    gains,
    isOriginal,
    setOriginal,
    masterVolume,
    setMasterVolume,
    louder: (steps) => setMasterVolume((now) => Math.max(0, Math.min(1, now + steps * masterStep))),
    // From the newest settings, not from the painted ones: keys may come faster than frames.
    change(name, changesOf) {
      setOriginal(false)
      setSettings((all) => {
        const now = all[name] ?? untouched
        return { ...all, [name]: { ...now, ...changesOf(isOriginal ? inOriginal(now) : now) } }
      })
    },
  }
}
