import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createDotProduct } from '../../src/core/media/dsp/kernels/dot-product.js'
import { createFlacKernels, maxOrder, partitionFields } from '../../src/core/media/dsp/kernels/flac-kernels.js'
import { createFrameKernels } from '../../src/core/media/dsp/kernels/frame-kernels.js'
import type { Kernel } from '../../src/core/media/dsp/kernels/kernel.js'
import { codeTables } from '../../src/core/media/dsp/kernels/mp3-codes.js'
import { createMp3Kernels } from '../../src/core/media/dsp/kernels/mp3-kernels.js'
import { createStereoPacking } from '../../src/core/media/dsp/kernels/pack-stereo.js'
import { createWienerKernels, filterFields, sumFields } from '../../src/core/media/dsp/kernels/wiener-kernels.js'
import { writeCodeTables } from '../../src/core/media/encode/mp3/huffman-coding.js'
import { packOnce, root } from '../package/tarball.js'
import { noise } from '../separation/tracks.js'
import { plainDotProduct } from './plain-kernels/dot-product.js'
import { plainFlacKernels } from './plain-kernels/flac-kernels.js'
import { plainFrameKernels } from './plain-kernels/frame-kernels.js'
import { plainMp3Kernels } from './plain-kernels/mp3-kernels.js'
import { plainStereoPacking } from './plain-kernels/pack-stereo.js'
import { plainWienerKernels } from './plain-kernels/wiener-kernels.js'

/** Halves at the scale of 16 bits and their neighbours, the ends of the ranges, values near zero, and non-numbers. */
const halves = [0, 0.5, -0.5, 1.5, -1.5, 0.499_999_97, 1 - 2 ** -24, -0.499_999_97, 32_766.5, 32_767.5, -32_768.5]
const ends = [
  1,
  -1,
  1 - 2 ** -24,
  -1 - 2 ** -23,
  2,
  -2,
  -0,
  1e-40,
  -1e-40,
  1e-20,
  1e30,
  -1e30,
  Infinity,
  -Infinity,
  NaN,
]
const edges = Float32Array.from([...halves.map((value) => value / 32_768), ...ends])
const lengths = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 441, 1000]

/** Fills for a memory: noise beyond the range of 16 bits, and edges between noise. */
const fills = {
  noise: (floats: number) => noise(floats, 5).map((value) => 2.2 * value),
  edges: (floats: number) => noise(floats, 6).map((value, i) => (i % 3 === 0 ? value : edges[(i * 7) % edges.length]!)),
}

/**
 * Runs both over the same memory and describes any difference, in results or anywhere in the memory, even where nothing
 * may be written. Compares bit for bit, except for the kind of NaN.
 */
function difference<Functions>(
  kernel: Kernel<Functions>,
  plain: (memory: Float32Array<ArrayBuffer>) => Functions,
  fill: Float32Array,
  run: (functions: Functions) => number | void,
): string | undefined {
  kernel.memory.set(fill)
  const memory = kernel.memory.slice()
  const [expected, returned] = [run(plain(memory)), run(kernel)]
  if (!Object.is(expected, returned)) return `returned: plain ${String(expected)}, kernel ${String(returned)}`
  const at = memory.findIndex((value, i) => !Object.is(value, kernel.memory[i]))
  return at < 0 ? undefined : `at ${at}: plain ${memory[at]}, kernel ${kernel.memory[at]}`
}

describe('a kernel and its plain JavaScript twin give the same, bit for bit:', () => {
  const floats = 5000
  const [dot, frame, packing] = [createDotProduct(floats), createFrameKernels(floats), createStereoPacking(floats)]

  describe.each(Object.entries(fills))('of %s', (_, fillOf) => {
    const fill = fillOf(floats)

    it.each(lengths)('%i floats, aligned and not', (count) => {
      for (const shift of [0, 1, 2, 3]) {
        const [to, a, b] = [16 + shift, 2100 + 3 * shift, 3300 + shift]
        expect(difference(dot, plainDotProduct, fill, ({ dotProduct }) => dotProduct(a, b, count))).toBeUndefined()
        expect(difference(frame, plainFrameKernels, fill, ({ multiply }) => multiply(to, a, b, count))).toBeUndefined()
        expect(difference(frame, plainFrameKernels, fill, ({ multiply }) => multiply(to, to, b, count))).toBeUndefined()
        expect(
          difference(frame, plainFrameKernels, fill, ({ multiplyAdd }) => multiplyAdd(to, a, b, count)),
        ).toBeUndefined()
        expect(difference(frame, plainFrameKernels, fill, ({ split }) => split(to, a, b, count))).toBeUndefined()
        expect(difference(frame, plainFrameKernels, fill, ({ merge }) => merge(to, a, b, count))).toBeUndefined()
        expect(difference(packing, plainStereoPacking, fill, ({ pack }) => pack(a, b, to, count))).toBeUndefined()
      }
    })
  })

  it('samples that are clipped on one side, on both and on none', () => {
    const planes = [Float32Array.of(2, 0, -2, 0, 1.1), Float32Array.of(0, 0, 2, -1.1, 0)]
    packing.memory.fill(0).set(planes[0]!, 0)
    packing.memory.set(planes[1]!, 5)
    expect(packing.pack(0, 5, 10, 5)).toBe(5)
    expect(
      difference(packing, plainStereoPacking, packing.memory.slice(), ({ pack }) => pack(0, 5, 10, 5)),
    ).toBeUndefined()
  })

  describe.each(Object.entries(fills))('the Wiener step of %s', (_, fillOf) => {
    const [pitch, rows] = [40, 3]
    const tilePlane = 4 * pitch
    const tile = 8
    const voice = tile + 4 * tilePlane
    const voicePlane = 5 * pitch
    const sums = voice + 2 * voicePlane
    const filters = sums + 2 * sumFields.length * pitch
    const wiener = createWienerKernels(filters + filterFields.length * pitch)
    const fill = fillOf(wiener.memory.length)

    it.each([0, 4, 8, 36])('in %i bins', (bins) => {
      for (const scale of [1, 0.1, 1e-9]) {
        // Sums are doubles: no arbitrary bits, and so large that their last digits depend on the order of adding.
        const withSums = fill.slice()
        new Float64Array(withSums.buffer, 4 * sums, sumFields.length * pitch).set(
          noise(sumFields.length * pitch, 9).map((value) => 100 * value),
        )
        expect(
          difference(wiener, plainWienerKernels, withSums, ({ addToSums }) =>
            addToSums(tile, tilePlane, voice, voicePlane, sums, pitch, bins, rows, scale),
          ),
        ).toBeUndefined()
      }
      expect(
        difference(wiener, plainWienerKernels, fill, ({ filter }) =>
          filter(tile, tilePlane, voice, voicePlane, filters, pitch, bins, rows),
        ),
      ).toBeUndefined()
      for (const shift of [0, 1]) {
        expect(
          difference(wiener, plainWienerKernels, fill, ({ magnitudes }) =>
            magnitudes(tile + shift, tile + tilePlane, voice + shift, bins),
          ),
        ).toBeUndefined()
      }
    })
  })
})

describe('the FLAC kernels and their plain twins give the same, bit for bit,', () => {
  const most = 1000
  // Doubles, and a signal with eight samples before it, as all signals here have.
  const [left, right, middle, side, window, windowed, sums, factors] = Array.from(
    { length: 8 },
    (_, index) => 2 * (16 + index * (most + 32)),
  ) as [number, number, number, number, number, number, number, number]
  const residual = 2 * (16 + 8 * (most + 32))
  const codes = residual + most + 32
  const flac = createFlacKernels(codes + 40 * most)

  function fillOf(bits: number): Float32Array {
    const fill = new Float32Array(flac.memory.length)
    const doubles = new Float64Array(fill.buffer)
    const put = (at: number, seed: number, scale: number, step: (value: number) => number) =>
      noise(most + 8, seed).forEach((value, i) => (doubles[at / 2 + i] = step(scale * value)))
    put(left, 1, 2 ** (bits - 1), Math.round)
    put(right, 2, 2 ** (bits - 1), Math.round)
    put(window, 3, 1, Math.abs)
    put(factors, 4, 2 ** 13, Math.round)
    new Int16Array(fill.buffer, 4 * residual, 2 * most + 2).set(noise(2 * most + 2, 5).map((value) => 2 ** 15 * value))
    return fill
  }

  const check = (fill: Float32Array, run: (kernels: ReturnType<typeof plainFlacKernels>) => number | void) =>
    expect(difference(flac, plainFlacKernels, fill, run)).toBeUndefined()

  it.each([9, 10, 15, 16, 17, 64, 999, 1000])('of %i samples of 16 and of 24 bits', (count) => {
    for (const bits of [16, 24]) {
      const fill = fillOf(bits)
      check(fill, ({ middleAndSide }) => middleAndSide(left, right, middle, side, count))
      check(fill, ({ separatePairs }) => separatePairs(residual, left, right, count))
      check(fill, ({ differenceSums }) => differenceSums(left, sums, count))
      check(fill, ({ autocorrelate }) => autocorrelate(left, window, windowed, sums, count))
      for (let order = 0; order <= maxOrder; order++) {
        for (const shift of [0, 9, 15])
          check(fill, (kernels) => kernels.residual(left, factors, order, 2 ** -shift, residual, count))
      }
    }
  })

  it.each([0, 1, 2, 5, 13, 14, 20, 29, 30])('in Rice codes with %i bits, after any number of bits', (parameter) => {
    const fill = fillOf(16)
    const values = new Int32Array(fill.buffer)
    // Codes of up to some hundred zeros, and codes of the largest residuals.
    const scale = Math.min(2 ** parameter * 40, 2 ** 30 - 1)
    noise(most, 7).forEach((value, i) => (values[residual + i] = value * scale))
    for (const count of [0, 1, 7, 1000]) {
      for (const [order, parts] of [
        [0, 1],
        [Math.min(count, 3), 1],
        [Math.min(count, 8), 32],
      ])
        check(fill, ({ foldedSums }) => foldedSums(residual, order!, Math.ceil(count / parts!), parts!, sums))
      values.set([0, parameter], sums)
      for (let bit = 0; bit < 40; bit++)
        check(fill, (kernels) => kernels.writePartitions(residual, count, Math.min(count, 3), sums, 5, codes, bit))
    }
  })
})

describe('the FLAC kernels and their plain twins divide residuals in the same way,', () => {
  const [residual, sums, partitions, codes] = [0, 4096, 4160, 4160 + partitionFields]
  const flac = createFlacKernels(codes + 8 * 4096)

  it.each([0, 1, 3, 12, 29])('of up to %i bits', (bits) => {
    for (const [sampleCount, parts, order] of [
      [4096, 32, 8],
      [4096, 32, 0],
      [96, 32, 2],
      [96, 32, 3],
      [1001, 1, 4],
      [9, 1, 8],
    ]) {
      // Louder towards the end, so that parameters differ.
      const fill = new Float32Array(flac.memory.length)
      const louder = noise(sampleCount!, 3).map((value, i) => 2 * value * 2 ** ((bits * (i + 1)) / sampleCount!))
      new Int32Array(fill.buffer).set(louder, residual)
      for (const parameterBits of [4, 5]) {
        const divide = (kernels: ReturnType<typeof plainFlacKernels>) => {
          kernels.foldedSums(residual, order!, sampleCount! / parts!, parts!, sums)
          return kernels.choosePartitions(sums, parts!, sampleCount!, order!, parameterBits, partitions)
        }
        expect(difference(flac, plainFlacKernels, fill, divide)).toBeUndefined()
        flac.memory.set(fill)
        // The encoder stores samples verbatim where codes would be longer.
        if (divide(flac) > 32 * sampleCount!) continue
        const divided = flac.memory.slice()
        for (const bit of [0, 5, 31])
          expect(
            difference(flac, plainFlacKernels, divided, ({ writePartitions }) =>
              writePartitions(residual, sampleCount!, order!, partitions, parameterBits, codes, bit),
            ),
          ).toBeUndefined()
      }
    }
  })
})

describe('the MP3 kernels and their plain twins give the same, bit for bit:', () => {
  const [samples, window, cosines, scratch, rows, matrix, values, to] = [0, 1100, 1700, 2300, 2400, 3700, 4500, 5200]
  const mp3 = createMp3Kernels(6000)

  it.each(Object.entries(fills))('of %s', (_, fillOf) => {
    const fill = fillOf(mp3.memory.length)
    const check = (run: (kernels: ReturnType<typeof plainMp3Kernels>) => number | void) =>
      expect(difference(mp3, plainMp3Kernels, fill, run)).toBeUndefined()
    for (const count of [1, 2, 18])
      check((kernels) => kernels.subbandRows(samples, window, cosines, scratch, rows, count))
    check(({ transform }) => transform(rows, matrix, values))
    for (const count of [4, 576]) {
      check(({ compressed }) => compressed(values, to, count))
      for (const scale of [1e-3, 1, 3000]) check(({ quantize }) => quantize(values, scale, to, count))
      check(({ limited }) => limited(values, 0.7, count))
      check(({ middleAndSide }) => middleAndSide(values, to, count))
    }
    check(({ energies }) => energies(rows, to))
  })

  it.each(Object.entries(fills))('of %s in bands', (_, fillOf) => {
    const fill = fillOf(mp3.memory.length)
    const [ends, factors] = [0, 100]
    const bands = [4, 10, 20, 22, 576]
    new Int32Array(fill.buffer).set(bands, ends)
    new Float64Array(fill.buffer).set(noise(32, 3), factors / 2)
    const check = (run: (kernels: ReturnType<typeof plainMp3Kernels>) => number | void) =>
      expect(difference(mp3, plainMp3Kernels, fill, run)).toBeUndefined()
    check(({ reduceAliases }) => reduceAliases(values, factors))
    check(({ bandSquares }) => bandSquares(values, ends, bands.length, samples + 200))
    check(({ stereoSums }) => stereoSums(values, to, ends, bands.length, samples + 200))
    for (const count of [1, bands.length]) check((kernels) => kernels.scaleBands(values, ends, factors, count, 576))
  })

  it.each([0, 1, 2, 7, 15, 16, 30, 8206])('the codes of magnitudes up to %i, after any number of bits', (largest) => {
    const [quantized, signs, regions, coding, frame, tables] = [0, 600, 1200, 1800, 1810, 4000]
    const codes = createMp3Kernels(tables + codeTables.end)
    const fill = new Float32Array(noise(codes.memory.length, 8))
    const integers = new Int32Array(fill.buffer)
    writeCodeTables(fill.fill(0, tables), tables)
    // Every end of the two regions, and values that decrease to 1 and to 0.
    for (let pairsEnd = 0; pairsEnd <= 576; pairsEnd += 2)
      integers.set([Math.min(36, pairsEnd), Math.min(200, pairsEnd)], regions + pairsEnd)
    const falling = noise(576, 9).map((value, i) => Math.abs(value) * 2 * largest * 2 ** (-i / 60))
    for (const end of [0, 2, 4, 38, 202, 470, 576]) {
      const values = Array.from(falling, (value, i) => (i < end ? Math.min(largest, Math.round(value)) : 0))
      integers.set(values, quantized)
      expect(
        difference(codes, plainMp3Kernels, fill, ({ chooseCodes }) =>
          chooseCodes(quantized, 576, regions, tables, coding),
        ),
      ).toBeUndefined()
      const bits = codes.chooseCodes(quantized, 576, regions, tables, coding)
      const chosen = codes.memory.slice()
      for (let bit = 0; bit < 17; bit++) {
        const write = (kernels: ReturnType<typeof plainMp3Kernels>) =>
          kernels.writeValues(quantized, signs, regions, tables, coding, frame, bit)
        expect(difference(codes, plainMp3Kernels, chosen, write)).toBeUndefined()
        // Exactly the counted number of bits is written.
        expect(write(codes)).toBe(bit + bits)
      }
    }
  })
})

describe('the pipeline', () => {
  const run = (flags: string[], ...given: string[]) => {
    const script = new URL('kernels-child.mjs', import.meta.url).pathname
    const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, script, ...given], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`The child ended with ${status}: ${stderr}`)
    return JSON.parse(stdout)
  }

  it('compiles each kernel once, when it is first used, and gives the same with their plain twins', () => {
    const compiled = run([])
    // Each kernel is run twice, each time with its own memory; packing has one memory for the whole process.
    expect(compiled).toMatchObject({ compiledByImport: 0, compiled: 6, instances: 11 })
    expect(compiled.transformed.roundTripError).toBeLessThan(1e-6)
    expect(run([], '--plain')).toEqual(compiled)
  })

  const error =
    'StemworkError MISSING_DEPENDENCY: This process cannot compile WebAssembly with SIMD, which audio code needs. ' +
    'Start Node.js without --jitless, on a processor with SSE4.1 (x86, from 2008 on) or on ARM64.'
  const everything = ['resampled', 'packed', 'refined', 'flac', 'mp3', 'transformed', 'decoded']

  it('says what is missing in a process without WebAssembly', () => {
    expect(run(['--jitless'], '--errors')).toEqual(Object.fromEntries(everything.map((name) => [name, error])))
  })

  it.skipIf(process.arch !== 'x64')('says so on a processor without SIMD (by a flag that only x64 has)', () => {
    const flags = ['--no-enable-sse4-1']
    expect(run(flags, '--errors')).toEqual(Object.fromEntries(everything.map((name) => [name, error])))
  })
})

describe('the package', () => {
  it('has every kernel as WebAssembly, and neither the sources nor the compiler', async () => {
    const { files: published } = packOnce()
    const kernels = readdirSync(`${root}src/core/media/dsp/kernels/assembly`)
      .filter((file) => file.endsWith('.ts'))
      .map((file) => file.replace(/\.ts$/, ''))
    expect(kernels).toHaveLength(6)
    const { compiledKernels } = (await import(`${root}build/core/media/dsp/kernels/compiled-kernels.js`)) as {
      compiledKernels: Record<string, string>
    }
    expect(Object.keys(compiledKernels)).toEqual(kernels.sort())
    const scripts = published.filter((path) => path.startsWith('dist/core/') && path.endsWith('.js'))
    const texts = scripts.map((path) => readFileSync(`${root}${path}`, 'utf8'))
    for (const bytes of Object.values(compiledKernels)) expect(texts.some((text) => text.includes(bytes))).toBe(true)
    expect(published.filter((path) => path.includes('assembly'))).toEqual([])
    const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
    expect(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })).not.toContain('assemblyscript')
  })
})
