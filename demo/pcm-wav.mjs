import { open } from 'node:fs/promises'

/** A whole 16-bit stereo WAV file, from planes of -1..1. */
export function toWav([left, right], sampleRate) {
  const dataBytes = left.length * 4
  const bytes = Buffer.alloc(44 + dataBytes)
  bytes.write('RIFF', 0)
  bytes.writeUInt32LE(36 + dataBytes, 4)
  bytes.write('WAVEfmt ', 8)
  bytes.writeUInt32LE(16, 16)
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(2, 22)
  bytes.writeUInt32LE(sampleRate, 24)
  bytes.writeUInt32LE(sampleRate * 4, 28)
  bytes.writeUInt16LE(4, 32)
  bytes.writeUInt16LE(16, 34)
  bytes.write('data', 36)
  bytes.writeUInt32LE(dataBytes, 40)
  const sample = (value) => Math.max(-32768, Math.min(32767, Math.round(value * 32768)))
  for (let i = 0; i < left.length; i++) {
    bytes.writeInt16LE(sample(left[i]), 44 + 4 * i)
    bytes.writeInt16LE(sample(right[i]), 46 + 4 * i)
  }
  return bytes
}

/** The planes of a 16-bit stereo WAV, -1..1. */
export function fromWav(bytes) {
  const start = samplesStart(bytes)
  const frames = Math.floor((bytes.length - start) / 4)
  const planes = [new Float32Array(frames), new Float32Array(frames)]
  for (let i = 0; i < 2 * frames; i++) planes[i & 1][i >> 1] = bytes.readInt16LE(start + 2 * i) / 32768
  return planes
}

/** Length, root mean square and peak of a 16-bit stereo WAV file of any size. */
export async function wavLevels(path, sampleRate) {
  const file = await open(path)
  try {
    const block = Buffer.alloc(1 << 20)
    let { bytesRead } = await file.read(block, 0, 4096, 0)
    let position = samplesStart(block.subarray(0, bytesRead))
    let sum = 0
    let peak = 0
    let count = 0
    while (({ bytesRead } = await file.read(block, 0, block.length, position)).bytesRead > 1) {
      for (const sample of new Int16Array(block.buffer, block.byteOffset, bytesRead >> 1)) {
        sum += sample * sample
        peak = Math.max(peak, Math.abs(sample))
      }
      count += bytesRead >> 1
      position += bytesRead
    }
    return { seconds: count / 2 / sampleRate, rms: Math.sqrt(sum / Math.max(1, count)) / 32768, peak: peak / 32768 }
  } finally {
    await file.close()
  }
}

/** The samples are the last chunk in all files read here. */
function samplesStart(bytes) {
  for (let at = 12; at + 8 <= bytes.length; at += 8 + bytes.readUInt32LE(at + 4)) {
    if (bytes.toString('latin1', at, at + 4) === 'data') return at + 8
  }
  throw new Error('This is not a WAV file with samples.')
}
