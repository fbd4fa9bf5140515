import { onePole, stateVariable } from './filters.mjs'
import { midiToHz, sampleRate } from './track.mjs'

/** A sawtooth without its worst alias tones: the step is rounded over one sample on each side (polyBLEP). */
function sawtooth(startPhase) {
  let phase = startPhase
  return (hz) => {
    const step = hz / sampleRate
    phase = (phase + step) % 1
    let value = 2 * phase - 1
    if (phase < step) value -= 2 * (phase / step) - (phase / step) ** 2 - 1
    else if (phase > 1 - step) value -= ((phase - 1) / step) ** 2 + 2 * ((phase - 1) / step) + 1
    return value
  }
}

function envelope(t, seconds, { attack, release }) {
  return Math.min(1, t / attack) * (t < seconds ? 1 : Math.max(0, 1 - (t - seconds) / release))
}

export function bassNote(note, seconds) {
  const hz = midiToHz(note)
  const saw = sawtooth(0.25)
  const filter = stateVariable('low', 1.3)
  const samples = new Float64Array(Math.round((seconds + 0.08) * sampleRate))
  for (let i = 0; i < samples.length; i++) {
    const t = i / sampleRate
    const sub = Math.sin(2 * Math.PI * hz * t)
    const bright = filter(saw(hz), 180 + 900 * Math.exp(-t / 0.18))
    samples[i] =
      Math.tanh(0.9 * sub + 0.7 * bright) *
      envelope(t, seconds, { attack: 0.006, release: 0.07 }) *
      (0.75 + 0.25 * Math.exp(-t / 0.3))
  }
  return samples
}

/** One voice of a pad: a few sawtooth waves a little out of tune. Two of them with different `random` make it wide. */
export function padVoice(note, seconds, random) {
  const oscillators = Array.from({ length: 3 }, () => ({
    saw: sawtooth(random.uniform()),
    hz: midiToHz(note + random.uniform(-0.09, 0.09)),
  }))
  const filter = stateVariable('low', 0.6)
  const sweepPhase = random.uniform(0, 2 * Math.PI)
  const samples = new Float64Array(Math.round((seconds + 0.9) * sampleRate))
  for (let i = 0; i < samples.length; i++) {
    const t = i / sampleRate
    const sum = oscillators.reduce((total, { saw, hz }) => total + saw(hz), 0) / 3
    samples[i] =
      filter(sum, 1100 + 500 * Math.sin(sweepPhase + 2 * Math.PI * 0.23 * t)) *
      envelope(t, seconds, { attack: 0.35, release: 0.85 })
  }
  return samples
}

/** A plucked string (Karplus and Strong, 1983), tuned by linear interpolation. */
export function pluckedNote(note, seconds, random, brightness = 0.5) {
  const period = sampleRate / midiToHz(note) - 0.5
  const line = new Float64Array(Math.ceil(period) + 2)
  const soften = onePole(1500 + 6000 * brightness)
  for (let i = 0; i < line.length; i++) line[i] = soften(random.noise())
  const loss = 10 ** ((-3 * (period / sampleRate)) / (1.2 + 1.6 * (60 / note)))
  const samples = new Float64Array(Math.round((seconds + 0.15) * sampleRate))
  const whole = Math.floor(period)
  const part = period - whole
  let write = 0
  let last = 0
  for (let i = 0; i < samples.length; i++) {
    const near = line[(write - whole + 2 * line.length) % line.length]
    const far = line[(write - whole - 1 + 2 * line.length) % line.length]
    const delayed = near + part * (far - near)
    line[write] = loss * (0.5 * delayed + 0.5 * last)
    last = delayed
    write = (write + 1) % line.length
    samples[i] = delayed * envelope(i / sampleRate, seconds, { attack: 0.001, release: 0.14 })
  }
  return samples
}

/** An electric piano: two-operator frequency modulation with a bright, short tine. */
export function keysNote(note, seconds, velocity) {
  const hz = midiToHz(note)
  const samples = new Float64Array(Math.round((seconds + 0.25) * sampleRate))
  for (let i = 0; i < samples.length; i++) {
    const t = i / sampleRate
    const turn = 2 * Math.PI * hz * t
    const body = Math.sin(turn + velocity * (0.5 + 1.1 * Math.exp(-t / 0.25)) * Math.sin(turn))
    const tine = 0.18 * velocity * Math.sin(2 * Math.PI * hz * 14 * t) * Math.exp(-t / 0.05)
    samples[i] =
      (body * Math.exp(-t / 1.3) + (hz * 14 < 16000 ? tine : 0)) *
      envelope(t, seconds, { attack: 0.003, release: 0.22 })
  }
  return samples
}
