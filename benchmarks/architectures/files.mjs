// Files for the benchmarks of architectures: models of generated networks, noise, and the demo song.
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openWavWriter } from '../../build/core/media/encode/wav-writer.js'
import { writeDemoSong } from '../../demo/demo-song.mjs'

export const sampleRate = 44_100

/** Writes a model folder for one of the networks of networks.mjs. */
export async function writeModel(folder, name, { files, ...manifest }) {
  const path = join(folder, name.replaceAll(/[^a-z0-9]/g, '-'))
  await mkdir(path)
  const described = []
  for (const [index, write] of files.entries()) {
    const [file, bytes] = [`${index}.onnx`, write()]
    await writeFile(join(path, file), bytes)
    described.push({ file, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') })
  }
  const [first, ...moreFiles] = described
  const common = {
    name: manifest.architecture,
    version: '0',
    licence: 'MIT',
    stems: ['vocals', 'accompaniments'],
    audio: { sampleRate, channels: 2 },
  }
  await writeFile(join(path, 'model.json'), JSON.stringify({ ...common, ...manifest, ...first, moreFiles }))
  return path
}

/** A WAV file of noise, `seconds` long. */
export async function writeNoise(folder, seconds) {
  const path = join(folder, `noise-${seconds}.wav`)
  const writer = await openWavWriter(path, { sampleRate, channels: 2, format: '16' })
  const planes = [0, 1].map(() => Float32Array.from({ length: sampleRate }, () => Math.random() - 0.5))
  for (let second = 0; second < seconds; second++) await writer.write(planes)
  await writer.close()
  return path
}

/** A WAV file of the demo song, repeated, `seconds` long. */
export async function writeSong(folder, seconds) {
  const { mixture, sampleRate } = await writeDemoSong(join(folder, 'demo.wav'))
  const path = join(folder, `song-${seconds}.wav`)
  const writer = await openWavWriter(path, { sampleRate, channels: 2, format: '16' })
  for (let left = seconds * sampleRate; left > 0; left -= mixture[0].length)
    await writer.write(mixture.map((plane) => plane.subarray(0, left)))
  await writer.close()
  return path
}
