import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removePartialFile } from './partial-file.js'
import type { PullOptions } from './pull-options.js'
import { modelEntry, modelNames } from './registry.js'
import { fetchWeights } from './weights.js'

/** Result of checking one address of a model's file. */
export interface AddressCheck {
  model: string
  file: string
  address: string
  /** Size and hash of the file found; absent if there is a problem. */
  bytes?: number
  sha256?: string
  /** Why the file is unavailable, or how it differs. */
  problem?: string
}

/**
 * Downloads the files of models from each of their addresses, checks sizes and hashes, and keeps nothing. Needs the
 * space of the largest model in the temporary folder.
 *
 * @param choices names or paths of manifests. Default: all known models
 * @throws StemworkError `INVALID_OPTIONS` for an unknown name or an invalid manifest; the signal's reason
 */
export async function* checkAddresses(
  choices: readonly string[] = modelNames,
  options: Omit<PullOptions, 'acceptLicence' | 'cacheFolder'> = {},
): AsyncGenerator<AddressCheck, void, void> {
  const { signal = new AbortController().signal } = options
  for (const choice of choices) {
    const entry = await modelEntry(choice)
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-check-'))
    try {
      for (const weight of entry.files) {
        for (const address of weight.addresses) {
          const checked = { model: entry.facts.name, file: weight.file, address }
          try {
            const single = { ...weight, addresses: [address] }
            const { bytes, sha256, partPath } = await fetchWeights(single, entry, folder, { ...options, signal })
            await removePartialFile(partPath)
            yield { ...checked, bytes, sha256 }
          } catch (error) {
            signal.throwIfAborted()
            yield { ...checked, problem: error instanceof Error ? error.message : String(error) }
          }
        }
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
}
