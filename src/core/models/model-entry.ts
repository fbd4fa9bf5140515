import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { invalidOptions } from '../engine/errors.js'
import type { StemName } from './stems.js'
import { checkInput, firstIssueText } from '../engine/workflow/check-input.js'
import { type Manifest, manifestSchema, weightFileSchema } from './manifest.js'

/** An ONNX file of a model and its addresses. */
export interface WeightFile {
  file: string
  /** Absent if only the hash is published; then any size is accepted. */
  bytes?: number
  /** Absent if only the archive's hash is published. */
  sha256?: string
  /** The archive that the addresses refer into with `#path`. */
  archive?: { bytes: number; sha256: string }
  /**
   * `https:`, `npm:package@version/path`, `file:` or a path, tried in this order. Empty: the file is next to its
   * manifest.
   */
  addresses: readonly string[]
}

/** A manifest without its files, with the fields of the model's architecture. */
export interface ModelFacts {
  name: string
  version: string
  architecture: string
  licence: string
  stems: readonly StemName[]
  audio: { sampleRate: number; channels: 1 | 2 }
  [field: string]: unknown
}

/** A model that is known by name or by a user's manifest. */
export interface ModelEntry {
  facts: ModelFacts
  /** In the order that the architecture expects. */
  files: readonly WeightFile[]
  /** Folder of the user's manifest; relative paths start here. */
  folder?: string
  /** Terms that must be accepted before the first download. */
  terms?: string
  /** Approximate size of the download, if the sizes of the files are not published. */
  aboutBytes?: number
  /** On two processor cores: `fast` is faster than real time, `medium` up to three times, `slow` longer than that. */
  speed?: 'fast' | 'medium' | 'slow'
  /** Published score, with the variant of SDR. */
  score?: string
  /**
   * Order of the models for `best`: roughly the dB of SDR of the vocals that `score` gives. The published scores are of
   * different music and variants, so close ones may rank the other way round on yours; `stemwork evaluate` tells. A
   * model without a quality is never the best.
   */
  quality?: number
  /** Its authors state a licence that allows commercial use. */
  isCommercial?: boolean
}

const sourceFields = { addresses: z.array(z.string().min(1)).default([]) }

const ownManifestSchema = manifestSchema.safeExtend({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must consist of letters, digits, ".", "_" and "-"'),
  ...sourceFields,
  moreFiles: z.array(weightFileSchema.extend(sourceFields)).optional(),
  terms: z.string().min(1).optional(),
  speedClass: z.enum(['fast', 'medium', 'slow']).optional(),
  score: z.string().min(1).optional(),
})

/**
 * Reads a user's manifest. It has the fields of a model folder's manifest, and `addresses` for files to download.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the field that is wrong
 */
export async function ownModel(path: string): Promise<ModelEntry> {
  const full = resolve(path)
  let content: unknown
  try {
    content = JSON.parse(await readFile(full, 'utf8'))
  } catch (error) {
    throw invalidOptions(`The manifest ${path} is missing or is not valid JSON. Name a readable manifest file.`, error)
  }
  const parsed = checkInput(ownManifestSchema, content)
  if (!parsed.success) {
    const problem = firstIssueText(parsed, 'manifest')
    throw invalidOptions(`In the manifest ${path}, ${problem}. Correct it.`)
  }
  const { file, bytes, sha256, addresses, moreFiles = [], terms, speedClass: speed, score, ...facts } = parsed.data
  return {
    facts,
    files: [{ file, bytes, sha256, addresses }, ...moreFiles],
    folder: dirname(full),
    terms,
    speed,
    score,
  }
}

/** The manifest of an entry, with these sizes and hashes of its files. */
export function manifestOf(
  { facts }: ModelEntry,
  files: readonly Required<Pick<WeightFile, 'file' | 'bytes' | 'sha256'>>[],
): Manifest {
  const [first, ...moreFiles] = files.map(({ file, bytes, sha256 }) => ({ file, bytes, sha256 }))
  return manifestSchema.parse({ ...facts, ...first, ...(moreFiles.length > 0 ? { moreFiles } : {}) })
}

/** True for a model whose files are next to its manifest, so that there is nothing to pull. */
export function isLocal({ files, folder }: ModelEntry): boolean {
  return folder !== undefined && files.every(({ addresses }) => addresses.length === 0)
}
