import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { StemworkError } from '../engine/errors.js'
import type { LocatedFile } from './addresses/byte-source.js'
import { locate, needsNetwork, onMirror } from './addresses/locate.js'
import { download, type DownloadOptions } from './download.js'
import { sha256 } from './file-hash.js'
import type { ModelEntry, WeightFile } from './model-entry.js'
import { openPartialFile, removePartialFile } from './partial-file.js'
import type { PullOptions } from './pull-options.js'
import { unpack } from './unpack.js'

/** Size and hash of a weights file. */
export interface Weights {
  file: string
  bytes: number
  sha256: string
}

export interface FetchedWeights extends Weights {
  /** Path of the complete, checked file under its temporary name. */
  partPath: string
  /** The archive that contained it; the next file may be in it, too. */
  archivePath?: string
}

type FetchOptions = PullOptions & { signal: AbortSignal }

interface Expected {
  bytes?: number
  sha256?: string
}

/** Downloads one file into the folder, from the first of its addresses that has it. */
export async function fetchWeights(
  weight: WeightFile,
  entry: ModelEntry,
  folder: string,
  options: FetchOptions,
): Promise<FetchedWeights> {
  const { mirror = process.env.STEMWORK_MODEL_MIRROR || undefined, offline = isOffline(), signal } = options
  const mirrored = (address: string) =>
    mirror !== undefined && needsNetwork(address) ? onMirror(mirror, address, weight.file) : address
  const addresses = [...new Set(weight.addresses.map(mirrored))]
  const allowed = offline ? addresses.filter((address) => !needsNetwork(address)) : addresses
  if (allowed.length === 0) {
    const message =
      `${weight.file} of the model ${entry.facts.name} is not on this machine, and offline mode does ` +
      'not allow a download. Pull it once while online, or put a copy into a folder and set STEMWORK_MODEL_MIRROR ' +
      'to that folder.'
    throw new StemworkError('MODEL_UNAVAILABLE', message, { details: { model: entry.facts.name } })
  }
  const failures: unknown[] = []
  for (const address of allowed) {
    try {
      const located = await locate(address, {
        folder: entry.folder ?? process.cwd(),
        allowHttp: mirror !== undefined,
        signal,
      })
      return await fetchLocated(located, weight, folder, options)
    } catch (error) {
      signal.throwIfAborted()
      failures.push(error)
    }
  }
  throw unavailable(weight, entry, failures)
}

/** Temporary names of a file and of the archive that contains it; files of the same archive share the latter. */
export function unfinishedNames({ file, archive }: WeightFile): [part: string, archive: string] {
  return [`${file}.part`, `${archive?.sha256.slice(0, 12) ?? file}.archive.part`]
}

/** Size and hash of an existing file. @throws StemworkError `MODEL_UNAVAILABLE` if it is a different file */
export async function hashedFile(path: string, weight: WeightFile): Promise<Weights> {
  const hash = await sha256(path)
  const { size: bytes } = await stat(path)
  const found = { file: weight.file, bytes, sha256: hash }
  const problem = difference(found, weight)
  if (problem === undefined) return found
  throw new StemworkError(
    'MODEL_UNAVAILABLE',
    `${path} already exists and is a different file: ${problem}. Move it elsewhere, or use it with a manifest of ` +
      'its own.',
  )
}

async function fetchLocated(
  { source, archive }: LocatedFile,
  weight: WeightFile,
  folder: string,
  options: FetchOptions,
): Promise<FetchedWeights> {
  const partPath = join(folder, unfinishedNames(weight)[0])
  const progress: DownloadOptions = {
    signal: options.signal,
    retryDelayMs: options.retryDelayMs,
    onBytes: (bytesDone, bytesTotal) => options.onProgress?.({ file: weight.file, bytesDone, bytesTotal }),
  }
  if (!archive) return { file: weight.file, ...(await downloadChecked(source, partPath, weight, progress)), partPath }
  const archivePath = join(folder, unfinishedNames(weight)[1])
  await downloadChecked(source, archivePath, weight.archive ?? {}, progress)
  const found = await unpackTo(partPath, archivePath, archive, weight, options.signal).catch(async (error: unknown) => {
    // Only unpacking shows that an archive without a hash is wrong.
    if (!weight.archive && !options.signal.aborted) await removePartialFile(archivePath)
    throw error
  })
  return { file: weight.file, ...found, partPath, archivePath }
}

async function downloadChecked(
  source: LocatedFile['source'],
  path: string,
  expected: Expected,
  options: DownloadOptions,
) {
  for (let isSecondTry = false; ; isSecondTry = true) {
    const { isResumed, ...found } = await download(source, path, { ...options, bytes: expected.bytes })
    const problem = difference(found, expected)
    if (problem === undefined) return found
    await removePartialFile(path)
    // The earlier part may have been from an older version of the file.
    if (!isResumed || isSecondTry) throw new WrongFile(`${source.name} has a different file: ${problem}`)
  }
}

async function unpackTo(
  partPath: string,
  archivePath: string,
  archive: NonNullable<LocatedFile['archive']>,
  expected: Expected,
  signal: AbortSignal,
) {
  await removePartialFile(partPath)
  const part = await openPartialFile(partPath, archivePath)
  try {
    for await (const chunk of unpack(archivePath, archive)) {
      signal.throwIfAborted()
      await part.append(chunk)
    }
  } finally {
    await part.close()
  }
  const found = { bytes: part.bytes, sha256: part.sha256() }
  const problem = difference(found, expected)
  if (problem === undefined) return found
  await removePartialFile(partPath)
  throw new WrongFile(`the archive has a different file: ${problem}`)
}

class WrongFile extends Error {}

function difference(found: Required<Expected>, { bytes, sha256 }: Expected): string | undefined {
  if (bytes !== undefined && found.bytes !== bytes) return `it has ${found.bytes} bytes; expected ${bytes}`
  if (sha256 !== undefined && found.sha256 !== sha256) return `it has the sha256 ${found.sha256}; expected ${sha256}`
  return undefined
}

function unavailable({ file }: WeightFile, { facts }: ModelEntry, failures: readonly unknown[]): StemworkError {
  const [known] = failures.filter(StemworkError.is)
  if (known) return known
  const reasons = failures.map((error) => reasonOf(error)).join('; ')
  const isWrong = failures.some((error) => error instanceof WrongFile)
  const advice = isWrong
    ? 'It was discarded. The file was changed on its server or in transit. Try again later, or use a mirror.'
    : 'The received bytes are kept. Run it again to continue.'
  return new StemworkError(
    'MODEL_UNAVAILABLE',
    `${file} of the model ${facts.name} could not be fetched: ${reasons}. ${advice}`,
    {
      retryable: !isWrong,
      details: { model: facts.name },
      cause: failures.length === 1 ? failures[0] : new AggregateError(failures),
    },
  )
}

/** The reason for "fetch failed" errors is in their cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error && error instanceof TypeError
    ? `${error.message}: ${error.cause.message}`
    : error.message
}

function isOffline(): boolean {
  const { STEMWORK_OFFLINE: value } = process.env
  return value !== undefined && value !== '' && value !== '0'
}
