import { mkdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { StemworkError } from '../engine/errors.js'
import { bestModel, bestModelName } from './best-model.js'
import { modelCacheFolder, writeJson } from './cache.js'
import { areTermsAccepted, notAccepted, rememberAcceptance } from './licence.js'
import { checkModel } from './load-model.js'
import type { Model } from './manifest.js'
import { isLocal, manifestOf, type ModelEntry } from './model-entry.js'
import { removePartialFile } from './partial-file.js'
import { withPullLock } from './pull-lock.js'
import type { PullOptions } from './pull-options.js'
import { isInstalled, manifestOnDisk, modelEntry, modelFolder } from './registry.js'
import { fetchWeights, hashedFile, type Weights } from './weights.js'

/**
 * Downloads a model's files into the cache if they are missing. Downloads are resumed, checked against their hashes and
 * published only when complete. If several processes pull the same model, one downloads it and the others wait. Files
 * that come from elsewhere are never overwritten.
 *
 * @param choice a name, `best`, or the path of a manifest
 * @throws StemworkError `MODEL_UNAVAILABLE` when the terms are not accepted, the network is not allowed or no address
 * has the right file; `INVALID_OPTIONS` for an unknown name or an invalid manifest. The signal's reason; a later call
 * continues where this one stopped.
 */
export async function pullModel(choice: string, options: PullOptions = {}): Promise<Model> {
  return pullEntry(await modelEntry(choice === bestModelName ? bestModel() : choice), options)
}

export async function pullEntry(entry: ModelEntry, options: PullOptions): Promise<Model> {
  const { acceptLicence = false, cacheFolder = modelCacheFolder(), signal = new AbortController().signal } = options
  const folder = modelFolder(entry, cacheFolder)
  const ready = await readyModel(entry, cacheFolder)
  if (ready) return ready
  const { name } = entry.facts
  if (entry.terms !== undefined && !acceptLicence && !(await areTermsAccepted(folder, entry.terms))) {
    throw notAccepted(name, entry.terms)
  }
  return withPullLock(join(cacheFolder, '.locks', `${name}.sqlite`), signal, async () => {
    // Another process may have pulled it in the meantime.
    const pulled = await readyModel(entry, cacheFolder)
    if (pulled) return pulled
    await mkdir(folder, { recursive: true })
    if (entry.terms !== undefined && acceptLicence) await rememberAcceptance(folder, entry.terms)
    return pullInto(folder, entry, { ...options, signal })
  })
}

async function readyModel(entry: ModelEntry, cacheFolder: string): Promise<Model | undefined> {
  const manifest = await manifestOnDisk(entry, cacheFolder)
  if (!manifest) return undefined
  const isComplete = isLocal(entry) || (await isInstalled(entry, cacheFolder))
  return isComplete ? checkModel(modelFolder(entry, cacheFolder), manifest) : undefined
}

async function pullInto(
  folder: string,
  entry: ModelEntry,
  options: PullOptions & { signal: AbortSignal },
): Promise<Model> {
  const archives = new Set<string>()
  const files: Weights[] = []
  for (const weight of entry.files) {
    const target = join(folder, weight.file)
    if (await exists(target)) {
      files.push(await hashedFile(target, weight))
      continue
    }
    const { archivePath, partPath, ...weights } = await fetchWeights(weight, entry, folder, options)
    await rename(partPath, target)
    await removePartialFile(partPath)
    if (archivePath !== undefined) archives.add(archivePath)
    files.push(weights)
  }
  for (const path of archives) await removePartialFile(path)
  const manifest = manifestOf(entry, files)
  const model = await checkModel(folder, manifest)
  // Written last: it marks the model as installed.
  await writeJson(join(folder, 'model.json'), manifest)
  return model
}

async function exists(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
    throw new StemworkError('MODEL_UNAVAILABLE', `${path} cannot be read.`, { cause: error })
  }
}
