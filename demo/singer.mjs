import { secondsPerBeat, songSeconds } from './band.mjs'
import { harmony, melody } from './song.mjs'
import { randomNumbers } from './synthesis/random.mjs'
import { reverb } from './synthesis/reverb.mjs'
import { addSound, addTrack, newTrack } from './synthesis/track.mjs'
import { sing } from './synthesis/voice.mjs'

/** The voice: a lead, doubled quietly on both sides, with a harmony in the chorus, an echo and a hall. */
export function singSong() {
  const lead = inSeconds(melody)
  const chorus = inSeconds(harmony)
  const parts = [
    { syllables: lead, seed: 11, gain: 1, pan: 0, singer: { tract: 1.04 } },
    { syllables: lead, seed: 12, gain: 0.2, pan: -0.6, singer: { tract: 1.06, detune: -0.08, lateSeconds: 0.014 } },
    { syllables: lead, seed: 13, gain: 0.2, pan: 0.6, singer: { tract: 1.02, detune: 0.08, lateSeconds: 0.019 } },
    { syllables: chorus, seed: 14, gain: 0.26, pan: -0.35, singer: { tract: 1.08, vibrato: 0.25, lateSeconds: 0.01 } },
    { syllables: chorus, seed: 15, gain: 0.22, pan: 0.35, singer: { tract: 1.0, detune: 0.06, lateSeconds: 0.017 } },
  ]
  const dry = newTrack(songSeconds)
  const send = newTrack(songSeconds)
  for (const { syllables, seed, gain, pan, singer } of parts) {
    const take = level(sing(syllables, songSeconds, randomNumbers(seed), singer))
    addSound(dry, take, { gain, pan })
    addSound(send, take, { gain: gain * 0.5, pan })
    addSound(send, take, { seconds: 0.75 * secondsPerBeat, gain: gain * 0.12, pan: 0.4 })
  }
  addTrack(dry, reverb(send, { decaySeconds: 1.5, dampingHz: 5000, predelayMs: 28 }), 0.55)
  return dry
}

function inSeconds(syllables) {
  return syllables.map(({ beat, length, ...rest }) => ({
    ...rest,
    seconds: beat * secondsPerBeat,
    length: length * secondsPerBeat,
  }))
}

/** A compressor with a slow release, as on any recorded voice, to a fixed loudness. */
function level(samples) {
  let follower = 0
  const compressed = samples.map((sample) => {
    const size = Math.abs(sample)
    follower += (size > follower ? 0.01 : 0.0002) * (size - follower)
    return sample / (0.04 + follower) ** 0.45
  })
  const loud = compressed.filter((sample) => Math.abs(sample) > 1e-3)
  const rms = Math.sqrt(loud.reduce((sum, sample) => sum + sample * sample, 0) / loud.length)
  return compressed.map((sample) => (0.13 * sample) / rms)
}
