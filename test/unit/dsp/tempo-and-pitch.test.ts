import { expect, test } from 'vitest'
import { TempoAndPitch } from '../../../src/core/media/dsp/stretch/tempo-and-pitch.js'
import { noise } from '../../separation/tracks.js'

const sampleRate = 700
const pulls = (change: TempoAndPitch, count: number) =>
  Array.from({ length: count }, () => change.pull()!.map((plane) => plane.slice()))

test('tempo and pitch are those of the input unless others are asked for', () => {
  const change = new TempoAndPitch({ sampleRate, channelCount: 1 })
  const input = noise(400)
  change.push([input])
  const output = Float32Array.from(pulls(change, 30).flatMap(([plane]) => [...plane!]))
  expect(Math.max(...output.map((value, i) => Math.abs(value - input[i]!)))).toBeLessThan(1e-6)
  const faster = new TempoAndPitch({ sampleRate, channelCount: 1, tempo: 2 })
  faster.push([new Float32Array(900)])
  pulls(faster, 10)
  expect(faster.position).toBe(10 * faster.hop * 2)
})

test('another tempo holds from the next frame on', () => {
  const change = new TempoAndPitch({ sampleRate, channelCount: 1, semitones: 12 })
  change.push([new Float32Array(4000)])
  const tempos = [1, 2, 0.5].map((tempo) => {
    change.setTempo(tempo)
    const before = change.position + change.hop
    pulls(change, 11)
    // The first of these hops began before, at the previous tempo.
    return (change.position - before) / (10 * change.hop)
  })
  for (const [index, tempo] of [1, 2, 0.5].entries()) expect(tempos[index]).toBeCloseTo(tempo, 0)
})

test('parts are heard as high as one another', () => {
  const change = new TempoAndPitch({ sampleRate, channelCount: 1, partCount: 2, semitones: 7 })
  const input = noise(900)
  change.push([input, input.map((value) => -value / 2)])
  for (const [one, half] of pulls(change, 20)) one!.forEach((value, i) => expect(half![i]).toBeCloseTo(-value / 2, 5))
})
