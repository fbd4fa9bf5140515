import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../temporary-folder.js'

/** Creates a folder for this test file. */
export function testFolder(): (name: string) => string {
  const folder = temporaryFolder()
  return (name) => join(folder, name)
}

/** Bytes without short repetitions. */
export function weightBytes(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length)
  let state = seed
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes[i] = state >>> 24
  }
  return bytes
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** A user's manifest for downloaded weights. */
export function manifestFor(bytes: Uint8Array, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name: 'own',
    version: '1',
    architecture: 'mdx',
    file: 'own.onnx',
    bytes: bytes.length,
    sha256: sha256(bytes),
    licence: 'MIT',
    stems: ['vocals', 'accompaniments'],
    audio: { sampleRate: 44_100, channels: 2 },
    addresses: ['https://weights.example/own.onnx'],
    ...changes,
  }
}

export async function writeManifest(path: string, content: unknown): Promise<string> {
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, JSON.stringify(content))
  return path
}
