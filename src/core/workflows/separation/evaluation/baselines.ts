import { type SpectrumLayout, Stft } from '../../../media/dsp/stft.js'

/**
 * A part of the stereo mixture with `context` additional samples on each side: silence beyond the ends of the track.
 */
export interface MixtureWindow {
  planes: Float32Array[]
  context: number
}

/** A separation without a model: scores are only meaningful in comparison with these. */
export interface Baseline {
  name: string
  /** Estimates for the part without its context. Valid until the next call. */
  estimate(window: MixtureWindow): BaselineStems
  close(): void
}

export interface BaselineStems {
  vocals: Float32Array[]
  /** Absent: the mixture minus the vocals. */
  accompaniments?: Float32Array[]
}

/** Samples of context that the baselines need. */
export const baselineContext = 4096
/** Lengths of windows without context are multiples of this. */
export const baselineStep = 1024

const bandGain = 0.35
const band = { fromHz: 150, toHz: 12_000 }
const centreBand = { fromHz: 120, toHz: 15_000 }

/** All baselines, for mixtures at this rate. */
export async function createBaselines(sampleRate: number): Promise<Baseline[]> {
  const hertz = (bin: number) => (bin * sampleRate) / baselineContext
  const isIn = ({ fromHz, toHz }: typeof band, bin: number) => hertz(bin) >= fromHz && hertz(bin) <= toHz
  return [
    scaled('mixture', 1, true),
    scaled('silence', 0, false),
    scaled('mixture x 1/4', 0.25, false),
    await masked('0.35 x 150 Hz to 12 kHz', ({ left, right }) => {
      for (const { re, im } of [left, right]) {
        for (let i = 0; i < re.length; i++) {
          const gain = isIn(band, i % bins) ? bandGain : 0
          re[i]! *= gain
          im[i]! *= gain
        }
      }
    }),
    await masked('centre mask', ({ left, right }) => {
      for (let i = 0; i < left.re.length; i++) {
        const [midRe, midIm] = [left.re[i]! + right.re[i]!, left.im[i]! + right.im[i]!]
        const mid = Math.hypot(midRe, midIm)
        const side = Math.hypot(left.re[i]! - right.re[i]!, left.im[i]! - right.im[i]!)
        const gain = mid > side && isIn(centreBand, i % bins) ? (mid - side) / (mid + side) : 0
        left.re[i] = right.re[i] = (gain * midRe) / 2
        left.im[i] = right.im[i] = (gain * midIm) / 2
      }
    }),
  ]
}

/** @param isBoth whether the accompaniments are the same as the vocals; else they are the rest of the mixture */
function scaled(name: string, gain: number, isBoth: boolean): Baseline {
  return {
    name,
    estimate({ planes, context }) {
      const vocals = planes.map((plane) => plane.slice(context, -context).map((value) => gain * value))
      return isBoth ? { vocals, accompaniments: vocals } : { vocals }
    },
    close: () => undefined,
  }
}

interface Spectrum {
  re: Float32Array
  im: Float32Array
}

const bins = baselineContext / 2 + 1
const layout: SpectrumLayout = { frameStride: bins, binStride: 1 }

/** @param mask changes the spectra of both channels (frame by frame, `bins` each) in place */
async function masked(name: string, mask: (spectra: { left: Spectrum; right: Spectrum }) => void): Promise<Baseline> {
  const stft = await Stft.create({ size: baselineContext, hop: baselineStep })
  return {
    name,
    estimate({ planes, context }) {
      const frameCount = stft.framesIn(planes[0]!.length)
      const spectra = planes.map((plane) => {
        const spectrum = { re: new Float32Array(frameCount * bins), im: new Float32Array(frameCount * bins) }
        stft.forward(plane, frameCount, spectrum.re, spectrum.im, layout)
        return spectrum
      })
      mask({ left: spectra[0]!, right: spectra[1]! })
      const vocals = spectra.map(({ re, im }) => {
        const whole = new Float32Array(stft.samplesOf(frameCount))
        stft.inverse(re, im, frameCount, layout, whole)
        return whole.subarray(context, planes[0]!.length - context)
      })
      return { vocals }
    },
    close: () => stft.close(),
  }
}
