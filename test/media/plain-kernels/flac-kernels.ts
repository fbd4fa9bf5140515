import { type FlacKernels, maxOrder, maxPartitions } from '../../../src/core/media/dsp/kernels/flac-kernels.js'

/** The FLAC kernels in plain TypeScript. Sums that may be rounded are added in the vectors' order. */
export function plainFlacKernels(memory: Float32Array<ArrayBuffer>): FlacKernels {
  const doubles = new Float64Array(memory.buffer, 0, memory.length >> 1)
  const integers = new Int32Array(memory.buffer)
  const view = new DataView(memory.buffer)
  const samples = new Int16Array(memory.buffer)
  return {
    separatePairs(pairs, left, right, count) {
      for (let i = 0; i < count + (count % 2); i++) {
        doubles[left / 2 + i] = samples[2 * (pairs + i)]!
        doubles[right / 2 + i] = samples[2 * (pairs + i) + 1]!
      }
    },

    middleAndSide(left, right, middle, side, count) {
      for (let i = 0; i < count + (count % 2); i++) {
        const [a, b] = [doubles[left / 2 + i], doubles[right / 2 + i]]
        doubles[middle / 2 + i] = Math.floor((a! + b!) / 2)
        doubles[side / 2 + i] = a! - b!
      }
    },

    differenceSums(signal, to, count) {
      const sums = new Float64Array(5)
      const start = signal / 2
      const end = start + count - (count % 2)
      for (let i = start + 4; i < end; i++) {
        let differences = [0, 1, 2, 3, 4].map((before) => doubles[i - before])
        for (let order = 0; order < 5; order++) {
          sums[order]! += Math.abs(differences[0]!)
          differences = differences.slice(1).map((value, index) => differences[index]! - value!)
        }
      }
      doubles.set(sums, to / 2)
    },

    autocorrelate(signal, window, windowed, to, count) {
      const even = new Float64Array(maxOrder + 1)
      const odd = new Float64Array(maxOrder + 1)
      const start = windowed / 2
      for (let i = 0; i < count - (count % 2); i++) {
        const now = (doubles[start + i] = doubles[signal / 2 + i]! * doubles[window / 2 + i]!)
        const sums = i % 2 === 0 ? even : odd
        for (let lag = 0; lag <= maxOrder; lag++) {
          // A pair is written before it is read.
          sums[lag]! += now * doubles[start + i - lag]!
        }
      }
      for (let lag = 0; lag <= maxOrder; lag++) doubles[to / 2 + lag] = even[lag]! + odd[lag]!
    },

    residual(signal, coefficients, order, scale, to, count) {
      const end = order + 4 * Math.ceil((count - order) / 4)
      let largest = 0
      for (let i = order; i < end; i++) {
        let sum = 0
        for (let j = 0; j < order; j++) sum += doubles[coefficients / 2 + j]! * doubles[signal / 2 + i - 1 - j]!
        const value = doubles[signal / 2 + i]! - Math.floor(sum * scale)
        largest = Math.max(largest, Math.abs(value))
        integers[to + i] = Math.min(Math.max(value, -(2 ** 31)), 2 ** 31 - 1)
      }
      return largest
    },

    foldedSums(residual, order, length, parts, to) {
      for (let part = 0; part < parts; part++) {
        let sum = 0
        for (let i = part === 0 ? order : 0; i < length; i++) sum += folded(integers[residual + part * length + i]!)
        doubles[to / 2 + part] = sum
      }
    },

    choosePartitions(sums, parts, sampleCount, order, parameterBits, to) {
      const maxParameter = 2 ** parameterBits - 2
      let least = Infinity
      for (let rest = parts; ; rest /= 2) {
        const parameters: number[] = []
        let bits = rest * parameterBits
        for (let part = 0; part < rest; part++) {
          const sum = doubles[sums / 2 + part]!
          const count = sampleCount / rest - (part === 0 ? order : 0)
          const parameter = bestParameter(sum, count, maxParameter)
          parameters.push(parameter)
          bits += count === 0 ? 0 : codeBits(sum, count, parameter)
        }
        integers.set(parameters, to + 1 + maxPartitions)
        if (bits < least) {
          least = bits
          integers.set([Math.log2(rest), ...parameters], to)
        }
        if (rest === 1) return least
        for (let part = 0; part < rest / 2; part++)
          doubles[sums / 2 + part] = doubles[sums / 2 + 2 * part]! + doubles[sums / 2 + 2 * part + 1]!
      }
    },

    writePartitions(residual, sampleCount, order, partitions, parameterBits, to, bit) {
      const start = 4 * to
      let at = start + (bit >> 3)
      let used = bit & 7
      let pending = view.getUint8(at) >> (8 - used)
      /** @param length of the value, 0 to 32 bits */
      const put = (value: number, length: number) => {
        const room = 32 - used
        if (length < room) {
          pending = (pending << length) | value
          used += length
          return
        }
        used = length - room
        view.setUint32(at, (room === 32 ? 0 : pending << room) | (value >>> used))
        at += 4
        pending = value & ((1 << used) - 1)
      }
      const parts = 2 ** integers[partitions]!
      for (let part = 0; part < parts; part++) {
        const parameter = integers[partitions + 1 + part]!
        put(parameter, parameterBits)
        const from = residual + (part * sampleCount) / parts
        for (let i = part === 0 ? from + order : from; i < from + sampleCount / parts; i++) {
          const code = folded(integers[i]!)
          let zeros = parameter === 0 ? code : code >>> parameter
          for (; zeros + parameter >= 32; zeros -= Math.min(zeros, 32)) put(0, Math.min(zeros, 32))
          put((1 << parameter) | (code & ((1 << parameter) - 1)), zeros + 1 + parameter)
        }
      }
      view.setUint32(at, used === 0 ? 0 : pending << (32 - used))
      return 8 * (at - start) + used
    },
  }
}

function bestParameter(sum: number, count: number, maxParameter: number): number {
  if (count === 0) return 0
  const low = Math.min(31 - Math.clz32(Math.max(1, (sum / count) * Math.LN2)), maxParameter)
  const high = Math.min(low + 1, maxParameter)
  return codeBits(sum, count, high) < codeBits(sum, count, low) ? high : low
}

/**
 * A code has the parameter's bits, and as many zeros before a one as its upper bits say. The lower bits are half of
 * their range on average.
 */
function codeBits(sum: number, count: number, parameter: number): number {
  const step = 2 ** parameter
  return count * (1 + parameter) + Math.max(0, (sum - (count * (step - 1)) / 2) / step)
}

function folded(value: number): number {
  return ((value << 1) ^ (value >> 31)) >>> 0
}
