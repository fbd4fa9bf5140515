import { onePole, resonator, stateVariable } from './filters.mjs'
import { gestures } from './gestures.mjs'
import { midiToHz, sampleRate } from './track.mjs'

const oversampling = 4
const controlFrames = 32
const bandwidthsHz = [75, 95, 130, 190, 240]

/**
 * Sings syllables with a source and a filter: pulses of the vocal folds with vibrato, glides, breath and small irregularities, through
 * the five resonances of a vocal tract that moves from sound to sound.
 *
 * @param {object} singer
 * @param {number} [singer.tract] 1 for a tenor, more for a shorter vocal tract
 * @param {number} [singer.transpose] semitones
 * @param {number} [singer.detune] semitones, constant
 * @returns {Float64Array} mono
 */
export function sing(
  syllables,
  seconds,
  random,
  { tract = 1, transpose = 0, detune = 0, vibrato = 0.32, lateSeconds = 0 } = {},
) {
  const frames = Math.round(seconds * sampleRate)
  const shifted = syllables.map((syllable) => ({
    ...syllable,
    seconds: syllable.seconds + lateSeconds + random.uniform(-0.008, 0.008),
  }))
  const targets = gestures(shifted)
  const pitch = pitchCurve(shifted, frames, random, { transpose: transpose + detune, vibrato })
  const folds = vocalFolds(pitch, frames, random)
  const tilt = onePole(2800)
  const formants = bandwidthsHz.map(() => resonator(sampleRate))
  const air = stateVariable('high', 0.7)
  const teeth = stateVariable('band', 1.6)
  const now = { formants: [...targets[0].formants], voice: 0, breath: 0, hiss: 0, hissHz: 6000 }
  const samples = new Float64Array(frames)
  let next = 0

  for (let i = 0; i < frames; i++) {
    if (i % controlFrames === 0) {
      while (next < targets.length && targets[next].seconds <= i / sampleRate) next++
      approach(now, targets[Math.max(0, next - 1)])
      now.formants.forEach((hz, index) =>
        formants[index].tune(hz * tract * (1 + 0.01 * random.noise()), bandwidthsHz[index] * (1 + now.breath)),
      )
    }
    const noise = random.noise()
    const { pulse, openness } = folds[i]
    const loudness = now.voice * pitch.loudness[Math.floor(i / controlFrames)]
    const voiced = loudness * (0.7 * tilt(pulse) + 0.3 * pulse)
    const breath = (now.breath + 0.035 * loudness) * noise * (0.4 + 0.6 * openness)
    let sample = voiced + 0.35 * breath
    for (const formant of formants) sample = formant.next(sample)
    samples[i] =
      sample +
      0.05 * air(noise * (now.breath + 0.05 * loudness), 7000) +
      0.16 * now.hiss * teeth(random.noise(), now.hissHz)
  }
  return samples
}

/** Moves one control step towards the target: the tongue takes some 20 ms, a burst of air comes at once. */
function approach(now, target) {
  const step = (ms) => 1 - Math.exp(-controlFrames / sampleRate / (ms / 1000))
  target.formants.forEach((hz, index) => (now.formants[index] += step(22) * (hz - now.formants[index])))
  now.voice += step(target.voice > now.voice ? 14 : 20) * (target.voice - now.voice)
  now.breath += step(12) * (target.breath - now.breath)
  now.hiss += step(target.sudden ? 1 : 14) * (target.hiss - now.hiss)
  if (target.hissHz) now.hissHz = target.hissHz
}

/** Fundamental frequency and loudness at each control step. */
function pitchCurve(syllables, frames, random, { transpose, vibrato }) {
  const steps = Math.ceil(frames / controlFrames) + 1
  const hz = new Float64Array(steps)
  const loudness = new Float64Array(steps)
  const stepSeconds = controlFrames / sampleRate
  const drift = onePole(25)
  let index = 0
  let note = syllables[0].note - 1.5
  let vibratoPhase = 0
  for (let step = 0; step < steps; step++) {
    const seconds = step * stepSeconds
    while (index + 1 < syllables.length && syllables[index + 1].seconds - 0.05 <= seconds) {
      const rest = syllables[index + 1].seconds - (syllables[index].seconds + syllables[index].length)
      index++
      // A new phrase is approached from below.
      if (rest > 0.3) note = syllables[index].note - 1.2
    }
    const { seconds: start, length, note: goal, accent = 1 } = syllables[index]
    const within = seconds - start
    note += (1 - Math.exp(-stepSeconds / 0.038)) * (goal - note)
    vibratoPhase += 2 * Math.PI * stepSeconds * (5.3 + 0.3 * Math.sin(seconds * 1.7))
    const depth = vibrato * Math.min(1, Math.max(0, (within - 0.22) / 0.45))
    hz[step] = midiToHz(note + transpose + depth * Math.sin(vibratoPhase) + 3.2 * drift(random.noise()))
    const swell = 0.82 + 0.18 * Math.sin(Math.PI * Math.min(1, Math.max(0, within / length)))
    loudness[step] = accent * swell * (1 + 0.06 * depth * Math.sin(vibratoPhase + 0.6))
  }
  return { hz, loudness }
}

/**
 * The flow through the vocal folds, differentiated (the polynomial pulse of Klatt and Klatt, 1990): made at four times the rate and
 * filtered down, or its sharp closures would alias.
 */
function vocalFolds(pitch, frames, random) {
  const taps = lowPassTaps()
  const high = new Float64Array(frames * oversampling + taps.length)
  const openness = new Float64Array(frames)
  let phase = 0
  let strength = 1
  let quotient = 0.62
  for (let i = 0; i < frames * oversampling; i++) {
    const position = i / (oversampling * controlFrames)
    const step = Math.floor(position)
    const part = position - step
    const hz = pitch.hz[step] + part * ((pitch.hz[step + 1] ?? pitch.hz[step]) - pitch.hz[step])
    phase += hz / (sampleRate * oversampling)
    if (phase >= 1) {
      phase -= 1
      strength = 1 + 0.05 * random.noise()
      quotient = 0.6 + 0.025 * random.noise()
    }
    const open = phase / quotient
    high[i] = open < 1 ? strength * (2 * open - 3 * open * open) : 0
    if (i % oversampling === 0) openness[i / oversampling] = open < 1 ? open * (1 - open) * 4 : 0
  }
  const folds = []
  for (let i = 0; i < frames; i++) {
    let pulse = 0
    for (let tap = 0; tap < taps.length; tap++) pulse += taps[tap] * high[i * oversampling + tap]
    folds.push({ pulse, openness: openness[i] })
  }
  return folds
}

function lowPassTaps() {
  const half = 40
  const taps = Array.from({ length: 2 * half + 1 }, (_, index) => {
    const x = (index - half) / oversampling
    const sinc = x === 0 ? 1 : Math.sin(Math.PI * 0.9 * x) / (Math.PI * 0.9 * x)
    return sinc * (0.5 + 0.5 * Math.cos((Math.PI * (index - half)) / (half + 1)))
  })
  const sum = taps.reduce((total, tap) => total + tap, 0)
  return taps.map((tap) => tap / sum)
}
