import { rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { invalidOptions } from '../engine/errors.js'
import { modelCacheFolder } from './cache.js'
import { acceptanceFile, areTermsAccepted } from './licence.js'
import { isBuiltIn } from './load-model.js'
import type { Model } from './manifest.js'
import { isLocal, type ModelEntry } from './model-entry.js'
import { removePartialFile } from './partial-file.js'
import { withPullLock } from './pull-lock.js'
import {
  embeddedModelName,
  isFile,
  isInstalled,
  manifestOnDisk,
  missingModel,
  modelEntry,
  modelFolder,
  modelNames,
  resolveModel,
  usableEntry,
} from './registry.js'
import { hashedFile, unfinishedNames } from './weights.js'

/** Facts about a model for choosing one. */
export interface ModelSummary {
  name: string
  architecture: string
  stems: readonly string[]
  /** Total size of its files; absent if it is not published and the files are not installed. */
  bytes?: number
  /** Approximate size of the download, if `bytes` is absent. */
  aboutBytes?: number
  licence: string
  /** Terms that must be accepted before the first download. */
  terms?: string
  termsAccepted?: boolean
  speed?: ModelEntry['speed']
  /** Published score of vocals, or vocals / accompaniments, with the variant of SDR. */
  score?: string
  note?: string
  addresses: readonly string[]
  installed: boolean
  /** Folder of its files, whether installed or not. */
  folder: string
}

/** The embedded model and all models known by name. */
export async function listModels(cacheFolder?: string): Promise<ModelSummary[]> {
  return Promise.all(modelNames.map((name) => modelInfo(name, cacheFolder)))
}

/** @throws StemworkError `INVALID_OPTIONS` for an unknown name or an invalid manifest */
export async function modelInfo(choice: string, cacheFolder = modelCacheFolder()): Promise<ModelSummary> {
  const entry = await usableEntry(choice, cacheFolder)
  const { facts, files, terms, speed, score, aboutBytes } = entry
  const folder = modelFolder(entry, cacheFolder)
  const manifest = await manifestOnDisk(entry, cacheFolder)
  const found = manifest && [manifest, ...(manifest.moreFiles ?? [])]
  return {
    name: isBuiltIn(folder) ? embeddedModelName : facts.name,
    architecture: facts.architecture,
    stems: facts.stems,
    bytes: total((found ?? files).map(({ bytes }) => bytes)),
    aboutBytes,
    licence: facts.licence,
    ...(terms === undefined ? {} : { terms, termsAccepted: await areTermsAccepted(folder, terms) }),
    speed,
    score,
    note: typeof facts.note === 'string' ? facts.note : undefined,
    addresses: files.flatMap(({ addresses }) => addresses),
    installed: await isInstalled(entry, cacheFolder),
    folder,
  }
}

/**
 * Checks early, and without reading its files, that a model is installed.
 *
 * @throws StemworkError `MODEL_UNAVAILABLE` naming the command that pulls it; `INVALID_OPTIONS` for an unknown name
 */
export async function requireModel(choice: string, cacheFolder?: string): Promise<void> {
  const { installed } = await modelInfo(choice, cacheFolder)
  if (!installed) throw missingModel(choice)
}

/**
 * Reads the model's files and checks their hashes.
 *
 * @throws StemworkError `MODEL_UNAVAILABLE` when a file is missing or has different content
 */
export async function verifyModel(choice: string, cacheFolder = modelCacheFolder()): Promise<Model> {
  const entry = await usableEntry(choice, cacheFolder)
  const manifest = await manifestOnDisk(entry, cacheFolder)
  if (manifest) {
    for (const file of [manifest, ...(manifest.moreFiles ?? [])]) {
      const path = join(modelFolder(entry, cacheFolder), file.file)
      if (await isFile(path)) await hashedFile(path, { ...file, addresses: [] })
    }
  }
  return resolveModel(choice, cacheFolder)
}

/**
 * Removes a pulled model from the cache, including unfinished downloads, and no other file.
 *
 * @returns whether there was anything to remove
 * @throws StemworkError `INVALID_OPTIONS` for a model whose files belong to the user or to the package
 */
export async function removeModel(choice: string, cacheFolder = modelCacheFolder()): Promise<boolean> {
  const entry = await modelEntry(choice)
  const { facts, files } = entry
  if (isLocal(entry)) {
    throw invalidOptions(
      `The model ${choice} was not pulled: its files are in ${entry.folder}. Only models in the cache can be removed.`,
    )
  }
  const folder = modelFolder(entry, cacheFolder)
  return withPullLock(join(cacheFolder, '.locks', `${facts.name}.sqlite`), new AbortController().signal, async () => {
    let isFound = false
    const ours = ['model.json', acceptanceFile, ...files.map(({ file }) => file)].map((file) => join(folder, file))
    for (const path of ours) {
      isFound ||= await isFile(path)
      await rm(path, { force: true })
    }
    for (const name of files.flatMap(unfinishedNames)) await removePartialFile(join(folder, name))
    await rmdir(folder).catch(() => undefined)
    return isFound
  })
}

function total(sizes: readonly (number | undefined)[]): number | undefined {
  return sizes.reduce((sum, size) => (sum === undefined || size === undefined ? undefined : sum + size), 0)
}
