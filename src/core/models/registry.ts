import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { invalidOptions, StemworkError } from '../engine/errors.js'
import { bestModelName, byQuality, recommendedModel, recommendedModelName } from './best-model.js'
import { folderInCache, modelCacheFolder, readJson } from './cache.js'
import { knownModels } from './known-models.js'
import { checkModel, embeddedModelFolder } from './load-model.js'
import { type Manifest, type Model, recordedFilesSchema } from './manifest.js'
import { isLocal, manifestOf, type ModelEntry, ownModel } from './model-entry.js'

/** Name of the bundled model. */
export const embeddedModelName = 'embedded'

/** Names that `resolveModel` accepts. */
export const modelNames: readonly string[] = [embeddedModelName, ...knownModels.map(({ facts }) => facts.name)]

/**
 * The entry of a model.
 *
 * @param choice a name, or the path of a manifest or of its folder
 * @throws StemworkError `INVALID_OPTIONS` for an unknown name or an invalid manifest
 */
export async function modelEntry(choice: string): Promise<ModelEntry> {
  const known = knownModels.find(({ facts }) => facts.name === choice)
  if (known) return known
  if (choice === recommendedModelName) return recommendedModel()
  if (choice === embeddedModelName) return ownModel(join(embeddedModelFolder, 'model.json'))
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- programs in JavaScript forget it
  if (typeof choice !== 'string')
    throw invalidOptions('A model is chosen by a text: its name, or the path of its manifest or of its folder.')
  if (choice.endsWith('.json')) return ownModel(choice)
  const isFolder =
    /[/\\]/.test(choice) ||
    (await stat(choice).then(
      (found) => found.isDirectory(),
      () => false,
    ))
  if (isFolder) return ownModel(join(choice, 'model.json'))
  throw invalidOptions(
    `There is no model "${choice}". Expected the path of a manifest (.json) or one of: ${modelNames.join(', ')}.`,
  )
}

/**
 * The entry of a model to use: for `best`, that of the best known model whose files are on this machine, else that of
 * the bundled one. Otherwise as `modelEntry`.
 */
export async function usableEntry(choice: string, cacheFolder: string): Promise<ModelEntry> {
  if (choice !== bestModelName) return modelEntry(choice)
  for (const entry of byQuality()) if (await isInstalled(entry, cacheFolder)) return entry
  return modelEntry(embeddedModelName)
}

/** Whether all files of the model are there. They are not read. */
export async function isInstalled(entry: ModelEntry, cacheFolder: string): Promise<boolean> {
  const manifest = await manifestOnDisk(entry, cacheFolder)
  if (!manifest) return false
  const folder = modelFolder(entry, cacheFolder)
  const files = [manifest, ...(manifest.moreFiles ?? [])]
  return (await Promise.all(files.map(({ file }) => isFile(join(folder, file))))).every(Boolean)
}

/**
 * A model that is ready to use: its files are on this machine, and their hashes are right. Never uses the network.
 *
 * @param choice a name, `best`, or the path of a manifest or of its folder
 * @throws StemworkError `MODEL_UNAVAILABLE` naming the command that pulls it; `INVALID_OPTIONS` for an unknown name, an
 * invalid manifest and damaged files
 */
export async function resolveModel(choice: string, cacheFolder = modelCacheFolder()): Promise<Model> {
  const entry = await usableEntry(choice, cacheFolder)
  const folder = modelFolder(entry, cacheFolder)
  const manifest = await manifestOnDisk(entry, cacheFolder)
  if (manifest) return checkModel(folder, manifest)
  throw missingModel(choice)
}

export function missingModel(choice: string): StemworkError {
  const message = `The model ${choice} is not on this machine. Fetch it: stemwork models pull ${choice}`
  return new StemworkError('MODEL_UNAVAILABLE', message, { details: { model: choice } })
}

/** Folder of the model's files: that of a local model, or the folder in the cache. */
export function modelFolder(entry: ModelEntry, cacheFolder: string): string {
  return isLocal(entry) && entry.folder !== undefined ? entry.folder : folderInCache(cacheFolder, entry)
}

/**
 * The manifest with the sizes and hashes that the files must have; undefined if the model was not pulled or has another
 * version.
 */
export async function manifestOnDisk(entry: ModelEntry, cacheFolder: string): Promise<Manifest | undefined> {
  if (isLocal(entry)) {
    return manifestOf(
      entry,
      entry.files.map(({ file, bytes = 0, sha256 = '' }) => ({ file, bytes, sha256 })),
    )
  }
  const recorded = recordedFilesSchema.safeParse(await readJson(join(folderInCache(cacheFolder, entry), 'model.json')))
  if (!recorded.success) return undefined
  const files = [recorded.data, ...(recorded.data.moreFiles ?? [])]
  const isOther = entry.files.some((expected, index) => {
    const found = files.at(index)
    return found?.file !== expected.file || (expected.sha256 !== undefined && expected.sha256 !== found.sha256)
  })
  return isOther ? undefined : manifestOf(entry, files)
}

export async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  )
}
