import { onePole } from './filters.mjs'
import { newTrack, sampleRate } from './track.mjs'

const delaysMs = [29.7, 37.1, 41.1, 43.7, 53.3, 59.9, 67.3, 73.9]

/** The reverberation of a track: eight delay lines that feed each other (a Householder network), without the direct sound. */
export function reverb(track, { decaySeconds, dampingHz = 6000, predelayMs = 15 }) {
  const wet = newTrack(track.frames / sampleRate)
  const lines = delaysMs.map((ms) => {
    const length = Math.round((ms / 1000) * sampleRate)
    return {
      samples: new Float64Array(length),
      position: 0,
      gain: 10 ** ((-3 * ms) / 1000 / decaySeconds),
      damp: onePole(dampingHz),
    }
  })
  const highPass = [onePole(180), onePole(180)]
  const predelay = Math.round((predelayMs / 1000) * sampleRate)
  const outputs = new Float64Array(lines.length)
  for (let i = 0; i < track.frames; i++) {
    let sum = 0
    lines.forEach((line, index) => {
      outputs[index] = line.gain * line.damp(line.samples[line.position])
      sum += outputs[index]
    })
    const source = i - predelay
    const left = source < 0 ? 0 : track.left[source] - highPass[0](track.left[source])
    const right = source < 0 ? 0 : track.right[source] - highPass[1](track.right[source])
    lines.forEach((line, index) => {
      line.samples[line.position] = outputs[index] - (2 / lines.length) * sum + (index % 2 ? right : left)
      line.position = (line.position + 1) % line.samples.length
    })
    wet.left[i] = 0.35 * (outputs[0] - outputs[2] + outputs[4] - outputs[6] + 0.4 * outputs[1])
    wet.right[i] = 0.35 * (outputs[1] - outputs[3] + outputs[5] - outputs[7] + 0.4 * outputs[2])
  }
  return wet
}
