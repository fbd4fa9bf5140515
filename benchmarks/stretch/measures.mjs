import { ComplexFft } from '../../build/core/media/dsp/stretch/complex-fft.js'

/** Length of the blocks whose energies are compared. */
const blockSeconds = 0.002
/** Blocks before and after an onset from which its sharpness is computed: 12 ms. */
const blocksAside = 6
/** Blocks around an onset's expected position in which it is searched: 30 ms. */
const blocksOff = 15
const clearOnsetDb = 9
const mostDb = 40

const bandCount = 40
const melOf = (hertz) => 2595 * Math.log10(1 + hertz / 700)
const hertzOf = (mel) => 700 * (10 ** (mel / 2595) - 1)

/**
 * Loss of energy rise at onsets, in dB, compared with the original, on average over its clear onsets; and the median
 * distance, in milliseconds, of onsets from their expected positions.
 */
export function onsetLoss(original, output, rate, ratio) {
  const rises = risesOf(output, rate)
  const onsets = onsetsOf(original, rate)
  let loss = 0
  const off = onsets.map(({ block, rise }) => {
    const place = Math.round(block * ratio)
    let [best, at] = [0, 0]
    for (let i = -blocksOff; i <= blocksOff; i++) if ((rises[place + i] ?? 0) > best) [best, at] = [rises[place + i], i]
    loss += rise - best
    return Math.abs(at) * 1000 * blockSeconds
  })
  off.sort((a, b) => a - b)
  return { count: onsets.length, loss: loss / onsets.length, off: off[off.length >> 1] }
}

/** Mean difference in dB between 40 mel bands of the original and of the output at the same position in the music. */
export function spectralDistance(original, output, rate, ratio, size) {
  const fft = new ComplexFft(size)
  const edge = (band) => (hertzOf(melOf(40) + ((melOf(15_000) - melOf(40)) * band) / bandCount) * size) / rate
  const bands = Array.from({ length: bandCount }, (_, band) => {
    const first = Math.round(edge(band))
    return [first, Math.max(first + 1, Math.round(edge(band + 1)))]
  })
  const pairs = []
  for (let middle = size; middle < original.length - size; middle += Math.round(rate / 50))
    pairs.push([powers(original, middle, fft, bands), powers(output, Math.round(middle * ratio), fft, bands)])
  const floor = 1e-6 * Math.max(...pairs.map(([given]) => Math.max(...given)))
  let [sum, count] = [0, 0]
  for (const [given, made] of pairs)
    for (let band = 0; band < bandCount; band++) {
      if (given[band] < floor) continue
      sum += Math.abs(10 * Math.log10((given[band] + floor) / (made[band] + floor)))
      count++
    }
  return sum / count
}

function powers(samples, middle, fft, bands) {
  const { size } = fft
  const [re, im] = [new Float64Array(size), new Float64Array(size)]
  for (let i = 0; i < size; i++)
    re[i] = (samples[middle - size / 2 + i] ?? 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size))
  fft.transform(re, im)
  return bands.map(([first, end]) => {
    let sum = 0
    for (let bin = first; bin < end; bin++) sum += re[bin] ** 2 + im[bin] ** 2
    return sum / (end - first)
  })
}

function onsetsOf(samples, rate) {
  const energies = energiesOf(samples, rate)
  const loud = (0.3 * energies.reduce((sum, value) => sum + value, 0)) / energies.length
  const rises = risesOf(samples, rate)
  return [...rises.keys()].flatMap((block) => {
    const rise = rises[block]
    const around = rises.subarray(Math.max(0, block - 25), block + 26)
    const isTop = rise >= Math.max(...around) && rise > (rises[block - 1] ?? 0)
    return isTop && rise > clearOnsetDb && mean(energies, block, block + blocksAside) > loud ? [{ block, rise }] : []
  })
}

function risesOf(samples, rate) {
  const energies = energiesOf(samples, rate)
  return energies.map((_, block) => {
    if (block < blocksAside) return 0
    const before = mean(energies, block - blocksAside, block)
    return Math.min(mostDb, 10 * Math.log10((mean(energies, block, block + blocksAside) + 1e-7) / (before + 1e-7)))
  })
}

function energiesOf(samples, rate) {
  const size = Math.round(blockSeconds * rate)
  return Float64Array.from({ length: Math.floor(samples.length / size) }, (_, block) => {
    let sum = 0
    for (let i = block * size; i < (block + 1) * size; i++) sum += samples[i] ** 2
    return sum / size
  })
}

function mean(values, from, to) {
  const part = values.subarray(from, to)
  return part.reduce((sum, value) => sum + value, 0) / part.length
}
