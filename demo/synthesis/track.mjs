export const sampleRate = 44100

/** A stereo track of samples, to which sounds are added. */
export function newTrack(seconds) {
  const frames = Math.round(seconds * sampleRate)
  return { left: new Float64Array(frames), right: new Float64Array(frames), frames }
}

/** Adds a mono sound at a time, with equal-power panning; `pan` -1 is left, 1 is right. */
export function addSound(track, samples, { seconds = 0, gain = 1, pan = 0 } = {}) {
  const angle = ((pan + 1) * Math.PI) / 4
  const left = Math.SQRT2 * gain * Math.cos(angle)
  const right = Math.SQRT2 * gain * Math.sin(angle)
  const start = Math.round(seconds * sampleRate)
  const from = Math.max(0, -start)
  const to = Math.min(samples.length, track.frames - start)
  for (let i = from; i < to; i++) {
    track.left[start + i] += left * samples[i]
    track.right[start + i] += right * samples[i]
  }
}

export function addTrack(track, other, gain = 1) {
  for (let i = 0; i < track.frames; i++) {
    track.left[i] += gain * other.left[i]
    track.right[i] += gain * other.right[i]
  }
}

export function midiToHz(note) {
  return 440 * 2 ** ((note - 69) / 12)
}

export function decibels(value) {
  return 10 ** (value / 20)
}
