import { RealFft } from '../build/core/media/dsp/fft.js'
import { stemComparison } from '../build/core/workflows/separation/evaluation/scores.js'

/**
 * Scores of estimated vocals and their complement against the true stems, and those of guesses without skill, with which
 * scores are compared.
 *
 * @returns {Promise<{ method: string, vocals: object, accompaniments: object }[]>}
 */
export async function scoreTable(song, estimate) {
  const quarter = song.mixture.map((plane) => plane.map((sample) => sample / 4))
  const rows = [
    { method: 'this separation', ...estimate },
    { method: 'guess: the mixture itself', vocals: song.mixture, accompaniments: song.mixture },
    { method: 'guess: mixture x 1/4', vocals: quarter, accompaniments: rest(song.mixture, quarter) },
    { method: 'guess: 0.35 x the band 150 Hz to 12 kHz', ...(await bandGuess(song)) },
  ]
  return rows.map(({ method, vocals, accompaniments }) => ({
    method,
    vocals: compare(song.vocals, vocals, song.sampleRate),
    accompaniments: compare(song.accompaniments, accompaniments, song.sampleRate),
  }))
}

function compare(reference, estimate, sampleRate) {
  const comparison = stemComparison(sampleRate)
  const frames = Math.min(reference[0].length, estimate[0].length)
  comparison.add(
    reference.map((plane) => plane.subarray(0, frames)),
    estimate.map((plane) => plane.subarray(0, frames)),
  )
  return comparison.scores()
}

function rest(mixture, part) {
  return mixture.map((plane, channel) => plane.map((sample, i) => sample - part[channel][i]))
}

async function bandGuess({ mixture, sampleRate }) {
  const vocals = await Promise.all(mixture.map((plane) => bandGain(plane, sampleRate)))
  return { vocals, accompaniments: rest(mixture, vocals) }
}

/** Half-overlapping Hann frames add up to the signal, so a gain for each bin is all that is needed. */
async function bandGain(plane, sampleRate, { gain = 0.35, fromHz = 150, toHz = 12_000, size = 8192 } = {}) {
  const fft = await RealFft.create(size)
  const hop = size / 2
  const output = new Float32Array(plane.length)
  for (let start = -hop; start < plane.length; start += hop) {
    const time = fft.time()
    for (let i = 0; i < size; i++) time[i] = (plane[start + i] ?? 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size))
    fft.forward(1)
    const spectrum = fft.spectrum()
    for (let bin = 0; bin < size / 2; bin++) {
      const hz = (bin * sampleRate) / size
      const factor = hz >= fromHz && hz <= toHz ? gain / size : 0
      spectrum[2 * bin] *= factor
      spectrum[2 * bin + 1] *= factor
    }
    fft.inverse(1)
    const filtered = fft.time()
    const end = Math.min(size, plane.length - start)
    for (let i = Math.max(0, -start); i < end; i++) output[start + i] += filtered[i]
  }
  return output
}
