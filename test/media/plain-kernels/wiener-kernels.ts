import {
  type FilterField,
  filterFields,
  type SumField,
  sumFields,
  type WienerKernels,
} from '../../../src/core/media/dsp/kernels/wiener-kernels.js'

/** The Wiener kernels in plain TypeScript: each operation is rounded where the vectors round it. */
export function plainWienerKernels(memory: Float32Array<ArrayBuffer>): WienerKernels {
  const doubles = new Float64Array(memory.buffer)
  return {
    magnitudes(re, im, to, bins) {
      let peak = 0
      for (let bin = 0; bin < bins; bin++) {
        memory[to + bin] = Math.sqrt(add(square(memory[re + bin]!), square(memory[im + bin]!)))
        if (memory[to + bin]! > peak) peak = memory[to + bin]!
      }
      return peak
    },

    addToSums(tile, tilePlane, voice, voicePlane, sums, pitch, bins, rows, scale) {
      const level = Math.fround(scale)
      for (let bin = 0; bin < bins; bin++) {
        const addTo = (field: SumField, value: number) =>
          (doubles[sums / 2 + sumFields.indexOf(field) * pitch + bin]! += value)
        for (let row = 0; row < rows; row++) {
          const mixtureAt = tile + row * pitch + bin
          const voiceAt = voice + row * pitch + bin
          const [leftRe, leftIm, rightRe, rightIm] = [0, 1, 2, 3].map(
            (index) => level * memory[mixtureAt + index * tilePlane]!,
          )
          const mixtureA = Math.sqrt(leftRe! * leftRe! + leftIm! * leftIm!)
          const mixtureB = Math.sqrt(rightRe! * rightRe! + rightIm! * rightIm!)
          const voiceA = level * memory[voiceAt]!
          const voiceB = level * memory[voiceAt + voicePlane]!
          const othersA = positive(mixtureA - voiceA)
          const othersB = positive(mixtureB - voiceB)
          // The angle between the channels, common to both sources; zero where a channel is silent.
          const product = mixtureA * mixtureB
          const perProduct = product > 0 ? 1 / product : 0
          const cosine = perProduct * (leftRe! * rightRe! + leftIm! * rightIm!)
          const sine = perProduct * (leftIm! * rightRe! - leftRe! * rightIm!)
          addTo('voiceLeft', voiceA * voiceA)
          addTo('voiceRight', voiceB * voiceB)
          addTo('voiceRe', voiceA * voiceB * cosine)
          addTo('voiceIm', voiceA * voiceB * sine)
          addTo('othersLeft', othersA * othersA)
          addTo('othersRight', othersB * othersB)
          addTo('othersRe', othersA * othersB * cosine)
          addTo('othersIm', othersA * othersB * sine)
          memory[voiceAt] = 0.5 * (voiceA * voiceA + voiceB * voiceB)
          memory[voiceAt + voicePlane] = 0.5 * (othersA * othersA + othersB * othersB)
        }
      }
    },

    filter(tile, tilePlane, voice, voicePlane, filters, pitch, bins, rows) {
      for (let bin = 0; bin < bins; bin++) {
        const values = filterFields.map((name, index) => [name, memory[filters + index * pitch + bin]])
        const field = Object.fromEntries(values) as Record<FilterField, number>
        for (let row = 0; row < rows; row++) {
          const mixtureAt = tile + row * pitch + bin
          const voiceAt = voice + row * pitch + bin
          const [voicePower, others] = [memory[voiceAt], memory[voiceAt + voicePlane]]
          const own = multiply(voicePower!, field.voiceDeterminant)
          const determinant = add(
            add(
              multiply(voicePower!, add(add(own, multiply(others!, field.mixedDeterminant)), field.voiceTrace)),
              multiply(others!, add(multiply(others!, field.othersDeterminant), field.othersTrace)),
            ),
            field.floor,
          )
          const gain = Math.fround(voicePower! / determinant)
          const upperLeft: Complex = [
            add(add(multiply(others!, field.nullLeftRe), own), field.guardLeft),
            multiply(others!, field.nullLeftIm),
          ]
          const upperRight: Complex = [
            add(multiply(others!, field.nullUpperRe), field.guardRe),
            add(multiply(others!, field.nullUpperIm), field.guardIm),
          ]
          const lowerLeft: Complex = [
            add(multiply(others!, field.nullLowerRe), field.guardRe),
            subtract(multiply(others!, field.nullLowerIm), field.guardIm),
          ]
          const lowerRight: Complex = [
            add(add(multiply(others!, field.nullRightRe), own), field.guardRight),
            multiply(others!, field.nullRightIm),
          ]
          const left: Complex = [memory[mixtureAt]!, memory[mixtureAt + tilePlane]!]
          const right: Complex = [memory[mixtureAt + 2 * tilePlane]!, memory[mixtureAt + 3 * tilePlane]!]
          const vocals = [
            ...weightedSum(upperLeft, left, upperRight, right),
            ...weightedSum(lowerLeft, left, lowerRight, right),
          ]
          vocals.forEach((value, index) => (memory[mixtureAt + index * tilePlane] = gain * value))
        }
      }
    },
  }
}

type Complex = readonly [re: number, im: number]

/** `a * left + b * right` */
function weightedSum(a: Complex, left: Complex, b: Complex, right: Complex): Complex {
  return [
    subtract(
      add(multiply(a[0], left[0]), multiply(b[0], right[0])),
      add(multiply(a[1], left[1]), multiply(b[1], right[1])),
    ),
    add(add(add(multiply(a[0], left[1]), multiply(b[0], right[1])), multiply(a[1], left[0])), multiply(b[1], right[0])),
  ]
}

const add = (a: number, b: number) => Math.fround(a + b)
const subtract = (a: number, b: number) => Math.fround(a - b)
const multiply = (a: number, b: number) => Math.fround(a * b)
const square = (a: number) => multiply(a, a)
const positive = (a: number) => (a > 0 ? a : 0)
