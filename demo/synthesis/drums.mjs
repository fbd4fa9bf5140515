import { onePole, stateVariable } from './filters.mjs'
import { sampleRate } from './track.mjs'

function render(seconds, sample) {
  const samples = new Float64Array(Math.round(seconds * sampleRate))
  for (let i = 0; i < samples.length; i++) samples[i] = sample(i / sampleRate)
  return samples
}

export function kick(random) {
  let phase = 0
  const click = onePole(4000)
  return render(0.45, (t) => {
    phase += (48 + 150 * Math.exp(-t / 0.022)) / sampleRate
    const body = Math.sin(2 * Math.PI * phase) * Math.exp(-t / 0.13)
    return Math.tanh(1.8 * body) * 0.8 + click(random.noise()) * 0.5 * Math.exp(-t / 0.004)
  })
}

export function snare(random) {
  const rattle = stateVariable('high', 0.8)
  const low = random.uniform(178, 186)
  return render(0.4, (t) => {
    const skin = (Math.sin(2 * Math.PI * low * t) + 0.6 * Math.sin(2 * Math.PI * low * 1.78 * t)) * Math.exp(-t / 0.055)
    return 0.5 * skin + 0.75 * rattle(random.noise(), 1500) * (0.6 * Math.exp(-t / 0.03) + 0.4 * Math.exp(-t / 0.11))
  })
}

/** Six detuned square waves, as in the cymbals of early drum machines, and noise. */
export function hat(random, { open = false } = {}) {
  const partialsHz = [263, 400, 421, 474, 587, 845].map((hz) => hz * 6.3)
  const filter = stateVariable('high', 0.9)
  const decay = open ? 0.16 : random.uniform(0.025, 0.04)
  return render(open ? 0.5 : 0.15, (t) => {
    const metal = partialsHz.reduce((sum, hz) => sum + Math.sign(Math.sin(2 * Math.PI * hz * t)), 0) / 6
    return filter(0.6 * metal + 0.7 * random.noise(), 7500) * Math.exp(-t / decay)
  })
}

export function crash(random) {
  const filter = stateVariable('high', 0.7)
  const partialsHz = Array.from({ length: 14 }, () => random.uniform(2200, 9500))
  return render(2.6, (t) => {
    const metal = partialsHz.reduce((sum, hz) => sum + Math.sin(2 * Math.PI * hz * t), 0) / 14
    return filter(0.5 * metal + 0.6 * random.noise(), 3200) * (0.5 * Math.exp(-t / 0.12) + 0.5 * Math.exp(-t / 0.75))
  })
}

export function tom(random, hz) {
  let phase = 0
  const noise = onePole(1800)
  return render(0.5, (t) => {
    phase += (hz * (1 + 0.5 * Math.exp(-t / 0.03))) / sampleRate
    return Math.sin(2 * Math.PI * phase) * Math.exp(-t / 0.16) + 0.35 * noise(random.noise()) * Math.exp(-t / 0.03)
  })
}

export function shaker(random) {
  const filter = stateVariable('band', 1.2)
  return render(
    0.12,
    (t) => filter(random.noise(), 6200) * Math.min(t / 0.03, 1) * Math.exp(-Math.max(0, t - 0.03) / 0.025),
  )
}
