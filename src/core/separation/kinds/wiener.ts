/** Both channels, `[2, bins, frames]`. */
export interface StereoSpectrum {
  re: Float32Array<ArrayBuffer>
  im: Float32Array<ArrayBuffer>
}

export interface RefinementSizes {
  bins: number
  frames: number
  /** Frames of the track: from, to. The others are left as they are. */
  first: number
  last: number
  /** Frames over which a source's place between the channels is taken as constant. */
  windowFrames: number
}

/** Keeps the matrices invertible; the reference implementation's `eps` in single precision. */
const guard = 1.1920929e-7

/** The mixture is scaled to this peak, so that the guard means the same at every level. The reference only scales down. */
const workingPeak = 10

/**
 * One step of expectation-maximisation of the local Gaussian model with two sources, the vocals and the rest of the magnitudes
 * (Duong, Vincent, Gribonval 2010; `expectation_maximization` of Open-Unmix): each source has a power `v` for every bin and
 * frame and a 2 x 2 covariance `R` between the channels for every bin and window; the vocals are
 * `v1 R1 (v1 R1 + v2 R2 + guard)^-1 x`.
 *
 * @param mixture overwritten with the vocals
 * @param magnitude that of the mixture, `[2, bins, frames]`
 * @param vocals what the network estimated, likewise
 */
export function refineVocals(
  mixture: StereoSpectrum,
  magnitude: Float32Array,
  vocals: Float32Array,
  sizes: RefinementSizes,
): void {
  const { first, last, windowFrames } = sizes
  for (let from = first; from < last; from += windowFrames) {
    refineWindow(mixture, magnitude, vocals, sizes, from, Math.min(from + windowFrames, last))
  }
}

function refineWindow(
  mixture: StereoSpectrum,
  magnitude: Float32Array,
  vocals: Float32Array,
  { bins, frames }: RefinementSizes,
  from: number,
  to: number,
): void {
  const right = bins * frames
  const peak = peakOf(magnitude, bins, frames, from, to)
  if (peak === 0) return
  const squaredScale = (workingPeak / peak) ** 2
  const place: Place = { voice: newCovariance(), others: newCovariance() }
  for (let bin = 0; bin < bins; bin++) {
    const stretch = { mixture, magnitude, vocals, right, start: bin * frames + from, end: bin * frames + to, squaredScale }
    estimatePlace(place, stretch)
    filter(place, stretch)
  }
}

/** Largest magnitude of both channels. */
function peakOf(magnitude: Float32Array, bins: number, frames: number, from: number, to: number): number {
  let peak = 0
  for (let row = 0; row < 2 * bins; row++) {
    for (let at = row * frames + from; at < row * frames + to; at++) if (magnitude[at] > peak) peak = magnitude[at]
  }
  return peak
}

/**
 * Mean of `y y^H` over a window, per mean power: Hermitian, so the lower left corner is the conjugate of the upper right one.
 */
interface Covariance {
  left: number
  right: number
  crossRe: number
  crossIm: number
}

/** How the two sources of a bin lie between the channels. */
interface Place {
  voice: Covariance
  others: Covariance
}

function newCovariance(): Covariance {
  return { left: 0, right: 0, crossRe: 0, crossIm: 0 }
}

/** The frames of one bin over a window: `start` to `end` in the left channel's plane, `right` further in the other one's. */
interface Stretch {
  mixture: StereoSpectrum
  magnitude: Float32Array
  vocals: Float32Array
  right: number
  start: number
  end: number
  /** Square of what brings the window to the working peak. */
  squaredScale: number
}

// The two loops below run for every bin and frame of a track. Plain numbers in local variables, no `Math.max` and one division
// each: half the time of the same with methods of `Covariance`.

/** The covariances over a window. Both sources have their magnitudes and the mixture's phases. */
function estimatePlace(place: Place, { mixture: { re, im }, magnitude, vocals, right, start, end, squaredScale }: Stretch): void {
  let voiceLeft = 0
  let voiceRight = 0
  let voiceRe = 0
  let voiceIm = 0
  let othersLeft = 0
  let othersRight = 0
  let othersRe = 0
  let othersIm = 0
  for (let at = start, other = start + right; at < end; at++, other++) {
    const voiceA = vocals[at]
    const voiceB = vocals[other]
    const restA = positive(magnitude[at] - voiceA)
    const restB = positive(magnitude[other] - voiceB)
    const product = magnitude[at] * magnitude[other]
    const perProduct = product > 0 ? 1 / product : 0
    const cosine = perProduct * (re[at] * re[other] + im[at] * im[other])
    const sine = perProduct * (im[at] * re[other] - re[at] * im[other])
    voiceLeft += voiceA * voiceA
    voiceRight += voiceB * voiceB
    voiceRe += voiceA * voiceB * cosine
    voiceIm += voiceA * voiceB * sine
    othersLeft += restA * restA
    othersRight += restB * restB
    othersRe += restA * restB * cosine
    othersIm += restA * restB * sine
  }
  normalise(place.voice, voiceLeft, voiceRight, voiceRe, voiceIm, squaredScale)
  normalise(place.others, othersLeft, othersRight, othersRe, othersIm, squaredScale)
}

function normalise(to: Covariance, left: number, right: number, crossRe: number, crossIm: number, squaredScale: number): void {
  const gain = squaredScale / ((squaredScale * (left + right)) / 2 + guard)
  to.left = gain * left
  to.right = gain * right
  to.crossRe = gain * crossRe
  to.crossIm = gain * crossIm
}

/** Replaces every `x` of a window by `v1 R1 (v1 R1 + v2 R2 + sqrt(guard))^-1 x`, in closed form. */
function filter({ voice, others }: Place, { mixture: { re, im }, magnitude, vocals, right, start, end, squaredScale }: Stretch): void {
  const { left: voiceLeft, right: voiceRight, crossRe: voiceRe, crossIm: voiceIm } = voice
  const { left: othersLeft, right: othersRight, crossRe: othersRe, crossIm: othersIm } = others
  const floor = Math.sqrt(guard)
  const powerScale = squaredScale / 2
  for (let at = start, other = start + right; at < end; at++, other++) {
    const voiceA = vocals[at]
    const voiceB = vocals[other]
    const restA = positive(magnitude[at] - voiceA)
    const restB = positive(magnitude[other] - voiceB)
    const voicePower = powerScale * (voiceA * voiceA + voiceB * voiceB)
    const othersPower = powerScale * (restA * restA + restB * restB)
    const left = voicePower * voiceLeft + othersPower * othersLeft + floor
    const lower = voicePower * voiceRight + othersPower * othersRight + floor
    const crossRe = voicePower * voiceRe + othersPower * othersRe
    const crossIm = voicePower * voiceIm + othersPower * othersIm
    const gain = voicePower / (left * lower - crossRe * crossRe - crossIm * crossIm)
    const xRe = re[at]
    const xIm = im[at]
    const yRe = re[other]
    const yIm = im[other]
    const uRe = gain * (lower * xRe - (crossRe * yRe - crossIm * yIm))
    const uIm = gain * (lower * xIm - (crossRe * yIm + crossIm * yRe))
    const wRe = gain * (left * yRe - (crossRe * xRe + crossIm * xIm))
    const wIm = gain * (left * yIm - (crossRe * xIm - crossIm * xRe))
    re[at] = voiceLeft * uRe + voiceRe * wRe - voiceIm * wIm
    im[at] = voiceLeft * uIm + voiceRe * wIm + voiceIm * wRe
    re[other] = voiceRight * wRe + voiceRe * uRe + voiceIm * uIm
    im[other] = voiceRight * wIm + voiceRe * uIm - voiceIm * uRe
  }
}

function positive(value: number): number {
  return value > 0 ? value : 0
}
