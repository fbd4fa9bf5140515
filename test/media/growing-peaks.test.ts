import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EncoderState } from '../../src/core/media/encode/audio-encoder.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { openGrowingPeaks, type GrowingPeaksOptions } from '../../src/core/media/pictures/growing-peaks.js'
import { plainCopy } from '../../src/adapters/stores/shared/plain-copy.js'
import { noise } from '../separation/tracks.js'
import { folderOfEachTest } from '../temporary-folder.js'

const rate = 8000
const perPeak = 512
const headerBytes = 24
const planes = [noise(10 * perPeak), noise(10 * perPeak).map((value) => value / 2)]
const part = (from: number, to: number) => planes.map((plane) => plane.subarray(from, to))

const folder = folderOfEachTest()
const path = join(folder, 'stem.wav.part')

async function open(options: Partial<GrowingPeaksOptions> = {}, from?: EncoderState) {
  const encoder = await openEncoder(path, { sampleRate: rate, channels: 2, format: '16', from })
  return openGrowingPeaks(encoder, `${path}.peaks`, { sampleRate: rate, from: from?.peaks, ...options })
}

async function peaks(): Promise<number[]> {
  const bytes = await readFile(`${path}.peaks`)
  return [...new Int8Array(bytes.buffer, bytes.byteOffset + headerBytes, bytes.length - headerBytes)]
}

/** Lowest and highest values of both planes. */
function expected(count: number): number[] {
  return Array.from({ length: count }, (_, index) => {
    const all = part(index * perPeak, (index + 1) * perPeak).flatMap((plane) => [...plane])
    return [Math.min(...all), Math.max(...all)].map((value) => Math.max(-128, Math.min(127, Math.round(value * 128))))
  }).flat()
}

test('peaks grow with the file, say how many there will be, and go when it is complete', async () => {
  const encoder = await open({ sampleCount: 10 * perPeak - 100 })
  const header = (await readFile(`${path}.peaks`)).subarray(0, headerBytes)
  expect([0, 1, 2, 3, 4, 5].map((index) => header.readInt32LE(4 * index))).toEqual([2, 1, rate, perPeak, 10, 1])
  await encoder.write(part(0, 700))
  expect(await peaks()).toEqual(expected(1))
  await encoder.write(part(700, 800))
  await encoder.write(part(800, 3 * perPeak))
  expect(await peaks()).toEqual(expected(3))
  await encoder.close()
  expect(await readdir(folder)).toEqual(['stem.wav.part'])
})

test('peaks of a continued file go on where they stopped; without a stated length, their number is open', async () => {
  const first = await open()
  await first.write(part(0, 1000))
  const state = first.state?.()
  expect(state?.peaks).toMatchObject({ bytes: headerBytes + 2, samples: 1000 - perPeak })
  await first.write(part(1000, 1100))
  const keptPeaks = (await readFile(`${path}.peaks`)).subarray(0, state?.peaks?.bytes)
  await first.abandon()
  await writeFile(`${path}.peaks`, keptPeaks)
  const second = await open({}, plainCopy(state))
  expect((await readFile(`${path}.peaks`)).readInt32LE(16)).toBe(0)
  await second.write(part(1000, 2 * perPeak))
  const complete = second.state?.()
  expect(complete?.peaks).toMatchObject({ bytes: headerBytes + 4, samples: 0, lowest: 0, highest: 0 })
  await second.write(part(2 * perPeak, 4 * perPeak))
  expect(await peaks()).toEqual(expected(4))
  await second.abandon()
})
