const clickSeconds = 0.03
const decaySeconds = 0.006
/** High and loud on the first beat of a bar. */
const sounds = { accent: { hertz: 1600, level: 0.8 }, beat: { hertz: 1000, level: 0.4 } }

/** A click of a metronome. */
export function clickSound(kind: keyof typeof sounds, sampleRate: number): Float32Array {
  const { hertz, level } = sounds[kind]
  return Float32Array.from({ length: Math.round(clickSeconds * sampleRate) }, (_, i) => {
    const t = i / sampleRate
    return level * Math.exp(-t / decaySeconds) * Math.cos(2 * Math.PI * hertz * t)
  })
}
