import { describe, expect, it } from 'vitest'
import { createArchitecture } from '../../src/core/workflows/separation/architectures/create-architecture.js'
import { hann, inverseStft, maskTrack, reflectPad, stft, type Complex } from '../media/double-reference.js'
import {
  differenceOfQuiet,
  kinkAt,
  loudestOfSilence,
  manifestOf,
  separateWith,
  silenceLike,
  stereoMusic,
  stereoNoise,
  watched,
  worstDifference,
  type LoadedModel,
} from './architecture-run.js'
import { testNetworks } from './networks.js'
import type { OnnxGraph } from './onnx-graph.js'

const load = testNetworks()

interface Sizes {
  bins: number
  hop: number
  frameCount: number
}

const shipped: Sizes = { bins: 2049, hop: 1024, frameCount: 255 }
const small: Sizes = { bins: 129, hop: 64, frameCount: 400 }

type Gain = (bin: number) => number
const all: Gain = () => 1
const known: Gain = (bin) => 0.5 + 0.4 * Math.cos(bin / 20)

function umxNetwork({ bins, frameCount }: Sizes, gain: Gain, isOpen = false): OnnxGraph {
  const shape = [1, 2, bins, isOpen ? 'frames' : frameCount]
  return {
    inputs: [{ name: 'magnitude', shape }],
    outputs: [{ name: 'vocals', shape }],
    nodes: [{ operator: 'Mul', inputs: ['magnitude', 'gain'], outputs: ['vocals'] }],
    constants: [{ name: 'gain', dims: [1, 1, bins, 1], values: Array.from({ length: bins }, (_, bin) => gain(bin)) }],
  }
}

async function model(sizes: Sizes, gain: Gain, fields: Record<string, unknown> = {}): Promise<LoadedModel> {
  const manifest = manifestOf('umx', { stems: ['vocals'], stft: { hop: sizes.hop }, ...fields })
  return { manifest, networks: [await load(umxNetwork(sizes, gain))] }
}

type Number2 = [re: number, im: number]
const times = (a: Number2, b: Number2): Number2 => [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
const plus = (...terms: Number2[]): Number2 => [
  terms.reduce((sum, [re]) => sum + re, 0),
  terms.reduce((sum, [, im]) => sum + im, 0),
]
const scaled = (a: Number2, factor: number): Number2 => [a[0] * factor, a[1] * factor]
const conjugate = ([re, im]: Number2): Number2 => [re, -im]
type Matrix = [[Number2, Number2], [Number2, Number2]]

function inverse([[a, b], [c, d]]: Matrix): Matrix {
  const [re, im] = plus(times(a, d), scaled(times(b, c), -1))
  const one = scaled([re, -im], 1 / (re * re + im * im))
  return [
    [times(one, d), times(one, scaled(b, -1))],
    [times(one, scaled(c, -1)), times(one, a)],
  ]
}

/** The vocals after one step of expectation-maximization, from the definitions, with general complex matrices. */
function refined(mixture: Complex[][], gain: Gain): Complex[][] {
  const eps = 1.1920929e-7
  const frameCount = mixture[0]!.length
  const bins = mixture[0]![0]!.re.length
  const out = mixture.map((frameList) => frameList.map(({ re, im }) => ({ re: re.slice(), im: im.slice() })))
  for (let first = 0; first < frameCount; first += 300) {
    const window = Array.from({ length: Math.min(300, frameCount - first) }, (_, i) => first + i)
    const peak = Math.max(
      ...window.flatMap((t) =>
        mixture.map((channel) => Math.max(...channel[t]!.re.map((re, bin) => Math.hypot(re, channel[t]!.im[bin]!)))),
      ),
    )
    const scale = peak / 10
    for (let bin = 0; bin < bins; bin++) {
      const x = (t: number): [Number2, Number2] =>
        [0, 1].map((channel) => [mixture[channel]![t]!.re[bin]! / scale, mixture[channel]![t]!.im[bin]! / scale]) as [
          Number2,
          Number2,
        ]
      const sources = [Math.max(0, gain(bin)), Math.max(0, 1 - gain(bin))]
      const power = (j: number, t: number) =>
        x(t).reduce((sum, [re, im]) => sum + (sources[j]! ** 2 * (re * re + im * im)) / 2, 0)
      const covariance = sources.map((factor, j): Matrix => {
        const total = window.reduce((sum, t) => sum + power(j, t), 0) + eps
        const entry = (a: number, b: number) =>
          scaled(plus(...window.map((t) => scaled(times(x(t)[a]!, conjugate(x(t)[b]!)), factor ** 2))), 1 / total)
        return [
          [entry(0, 0), entry(0, 1)],
          [entry(1, 0), entry(1, 1)],
        ]
      })
      for (const t of window) {
        const mixed = [0, 1].map((a) =>
          [0, 1].map((b) =>
            plus(scaled(covariance[0]![a]![b]!, power(0, t)), scaled(covariance[1]![a]![b]!, power(1, t)), [
              a === b ? Math.sqrt(eps) : 0,
              0,
            ]),
          ),
        ) as Matrix
        const inverted = inverse(mixed)
        const u = [0, 1].map((a) => plus(times(inverted[a]![0], x(t)[0]), times(inverted[a]![1], x(t)[1])))
        for (const a of [0, 1]) {
          const [re, im] = scaled(
            plus(times(covariance[0]![a]![0], u[0]!), times(covariance[0]![a]![1], u[1]!)),
            power(0, t) * scale,
          )
          out[a]![t]!.re[bin] = re
          out[a]![t]!.im[bin] = im
        }
      }
    }
  }
  return out
}

describe('the umx architecture', () => {
  it.each([1, 4410, 4411, 60_001])(
    'returns %i samples of the mixture from an identity network, after the refinement, too',
    async (sampleCount) => {
      for (const wienerSteps of [0, 1]) {
        const mixture = stereoNoise(sampleCount)
        const { vocals, accompaniments } = await separateWith(await model(small, all, { wienerSteps }), mixture)
        expect(worstDifference(vocals, mixture)).toBeLessThan(wienerSteps ? 1e-4 : 1e-5)
        expect(worstDifference(accompaniments, silenceLike(mixture))).toBeLessThan(wienerSteps ? 1e-4 : 1e-5)
      }
    },
  )

  it('combines the estimated magnitudes with the phases of the mixture', async () => {
    const mixture = stereoNoise(50_003, 3)
    const { vocals } = await separateWith(await model(small, known, { wienerSteps: 0 }), mixture)
    expect(
      worstDifference(
        vocals,
        mixture.map((plane) => maskTrack(plane, 256, 64, known)),
      ),
    ).toBeLessThan(1e-5)
  })

  const [noiseA, noiseB] = stereoNoise(20_003, 5) as [Float32Array, Float32Array]
  const tones = noiseA.map((_, i) => 0.3 * Math.sin(i / 3) + 0.2 * Math.sin(i / 17) + 0.1 * Math.sin(i / 1.3))
  it.each([
    [
      'two sources at different positions',
      noiseA.map((a, i) => 0.8 * a + 0.3 * noiseB[i]!),
      noiseA.map((a, i) => 0.2 * a - 0.6 * noiseB[i]!),
    ],
    // Inputs for which the determinant of the inverted matrix nearly vanishes.
    ['equal channels', noiseA, noiseA],
    ['steady tones in the middle', tones, tones],
    ['nearly parallel channels', noiseA, noiseA.map((a, i) => 0.999 * a + 0.001 * noiseB[i]!)],
    ['opposite channels', noiseA, noiseA.map((a) => -a)],
    ['one source to one side', noiseA, noiseA.map((a) => 0.3 * a)],
    ['another nearer to the middle', noiseA, noiseA.map((a) => 0.9 * a)],
    ['one silent channel', noiseA, noiseA.map(() => 0)],
    [
      'a loud and a quiet half',
      noiseA.map((a, i) => (i < 10_000 ? 1e-6 * a : a)),
      noiseB.map((b, i) => (i < 10_000 ? 1e-6 * b : b)),
    ],
  ])('refines by one step of expectation-maximization in windows of 300 frames: %s', async (_, ...mixture) => {
    const { vocals } = await separateWith(await model(small, known), mixture)
    const options = { size: 256, hop: 64, window: hann(256) }
    const spectra = mixture.map((plane) => stft(reflectPad(plane, 128, 128), options))
    const expected = refined(spectra, known).map((frames) =>
      inverseStft(frames, options).slice(128, 128 + noiseA.length),
    )
    expect(worstDifference(vocals, expected)).toBeLessThan(1e-4)
  })

  it('returns the known stem at the true shapes', async () => {
    const mixture = stereoMusic(60_001)
    const { manifest, networks } = await model(shipped, known, { wienerSteps: 0, stft: undefined })
    const { vocals } = await separateWith({ manifest, networks }, mixture)
    expect(worstDifference([vocals[1]!], [maskTrack(mixture[1]!, 4096, 1024, known)])).toBeLessThan(1e-4)
  })

  it('chooses the number of frames of a segment if the network leaves it open', async () => {
    const network = await load(umxNetwork(small, known, true))
    const sizes = new Set<number>()
    const seen = watched(network, ({ magnitude }) => sizes.add(magnitude!.dims[3]!))
    const manifest = manifestOf('umx', { stems: ['vocals'], stft: { hop: 64 }, frames: 100, wienerSteps: 0 })
    const mixture = stereoNoise(20_000)
    const { vocals } = await separateWith({ manifest, networks: [seen] }, mixture)
    expect([...sizes]).toEqual([100])
    expect(
      worstDifference(
        vocals,
        mixture.map((plane) => maskTrack(plane, 256, 64, known)),
      ),
    ).toBeLessThan(1e-5)
  })

  it('accepts mono without dividing by zero, and keeps silence silent', async () => {
    const [plane] = stereoNoise(30_000)
    const { vocals } = await separateWith(await model(small, known), [plane!, plane!])
    expect(worstDifference([vocals[0]!], [vocals[1]!])).toBeLessThan(1e-5)
    expect(vocals[0]!.every(Number.isFinite)).toBe(true)
    expect(await loudestOfSilence(await model(small, known), 9000)).toBe(0)
  })

  it('refines quiet tracks as well as loud ones', async () => {
    expect(await differenceOfQuiet(await model(small, known), stereoNoise(20_000, 7), 1024)).toBeLessThan(1e-5)
  })

  it('has no step at the joints, even where neighbouring segments disagree', async () => {
    const { manifest, networks } = await model({ ...small, frameCount: 80 }, all, { wienerSteps: 0 })
    let turn = 0
    const moody = {
      ...networks[0]!,
      run: async (...[feeds, fetches]: Parameters<(typeof networks)[0]['run']>) => {
        const gain = turn++ % 2 === 0 ? 1 : 0.5
        const result = await networks[0]!.run(feeds, fetches)
        for (let i = 0; i < fetches.vocals!.data.length; i++) fetches.vocals!.data[i]! *= gain
        return result
      },
    }
    const tone = Float32Array.from({ length: 16_000 }, (_, i) => 0.5 * Math.sin(i / 10))
    const { vocals } = await separateWith({ manifest, networks: [moody] }, [tone, tone])
    expect(turn).toBeGreaterThan(3)
    const step = Math.floor((0.75 * (79 * 64 - 256)) / 64) * 64
    expect(
      kinkAt(
        vocals[0]!.subarray(300, -300),
        [1, 2, 3, 4].map((segment) => segment * step),
      ),
    ).toBeLessThan(2)
  })

  it('refuses a network of complex spectra', async () => {
    const network = await load({
      ...umxNetwork(small, all),
      inputs: [{ name: 'magnitude', shape: [1, 4, 129, 400] }],
      outputs: [{ name: 'vocals', shape: [1, 4, 129, 400] }],
    })
    await expect(createArchitecture(manifestOf('umx', {}), [network])).rejects.toThrow('[batch, 2, bins, frames]')
  })
})
