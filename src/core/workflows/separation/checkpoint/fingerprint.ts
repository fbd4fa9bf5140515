import { createHash, hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { packageVersion } from '../../../engine/package-files.js'

/** Larger than Node's default, which takes half as long again. */
const pieceBytes = 1024 ** 2

/** A hash of the file's bytes, this package's version, and everything else that determines the samples. */
export async function fingerprintOf(inputPath: string, work: unknown): Promise<string> {
  const input = createHash('sha256')
  await pipeline(createReadStream(inputPath, { highWaterMark: pieceBytes }), input)
  const all = JSON.stringify({ input: input.digest('hex'), version: packageVersion(), work })
  return hash('sha256', all)
}
