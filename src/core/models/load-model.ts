import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StemworkError } from '../engine/errors.js'
import { packageFile } from '../engine/package-files.js'
import { sha256 } from './file-hash.js'
import type { Manifest, Model } from './manifest.js'

/** Folder of the bundled model. */
export const embeddedModelFolder = fileURLToPath(packageFile('models/embedded/'))

/** Whether this is the folder of the bundled model. */
export function isBuiltIn(folder: string): boolean {
  return resolve(folder) === resolve(embeddedModelFolder)
}

const checked = new Map<string, Promise<string>>()

/**
 * Checks the files of a model in a folder against the manifest's sizes and hashes, once per process and file version.
 *
 * @throws StemworkError `INVALID_OPTIONS` when a file is missing or is another one
 */
export async function checkModel(folder: string, manifest: Manifest): Promise<Model> {
  const path = await checkedPath(folder, manifest)
  const paths = [path]
  for (const file of manifest.moreFiles ?? []) paths.push(await checkedPath(folder, file))
  return { manifest, path, paths }
}

type ModelFile = Pick<Manifest, 'file' | 'bytes' | 'sha256'>

async function checkedPath(folder: string, expected: ModelFile): Promise<string> {
  const path = join(folder, expected.file)
  const file = await stat(path).catch((error: unknown) => {
    throw invalid(folder, `its file ${expected.file} is missing`, error)
  })
  const key = JSON.stringify([path, file.mtimeMs, file.size, expected.sha256])
  const known = checked.get(key)
  if (known) return known
  const checking = check(folder, path, file.size, expected)
  checked.set(key, checking)
  checking.catch(() => checked.delete(key))
  return checking
}

async function check(folder: string, path: string, foundBytes: number, expected: ModelFile): Promise<string> {
  const { file } = expected
  if (foundBytes !== expected.bytes)
    throw invalid(folder, `${file} has ${foundBytes} bytes; expected ${expected.bytes}`)
  const found = await sha256(path)
  if (found !== expected.sha256) throw invalid(folder, `${file} has the sha256 ${found}; expected ${expected.sha256}`)
  return path
}

function invalid(folder: string, reason: string, cause?: unknown): StemworkError {
  const message = `The model cannot be used: ${reason}. Install it again or choose another model.`
  return new StemworkError('INVALID_OPTIONS', message, { details: { folder }, cause })
}
