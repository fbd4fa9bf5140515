import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { StemworkError } from '../engine/errors.js'
import { packageFile } from '../engine/package-files.js'
import { stemNames } from './stems.js'
import { firstIssueText } from '../engine/workflow/schema-issues.js'

const fileName = z.string().regex(/^[^/\\]+$/, 'must be the name of a file next to the manifest')
const bytes = z.number().int().positive()
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits')

export const weightFileSchema = z.object({ file: fileName, bytes, sha256 })

/** The files of a model: all that the manifest of a pulled model is read for. */
export const recordedFilesSchema = weightFileSchema.extend({ moreFiles: z.array(weightFileSchema).optional() })

/** Architecture of the models that find beats; they have no stems. */
export const beatArchitecture = 'beat-this'

/** The common fields of a model's `model.json`. Each architecture reads further fields of its own. */
export const manifestSchema = z
  .looseObject({
    name: z.string().min(1),
    version: z.string(),
    /** Name of the module in `architectures/` that runs it, or `beatArchitecture`. */
    architecture: z.string().min(1),
    /** ONNX file next to the manifest. */
    file: fileName,
    bytes,
    sha256,
    /** The networks after the first one, for architectures that have several, in the architecture's order. */
    moreFiles: z.array(weightFileSchema).optional(),
    licence: z.string(),
    /** Stems that the model estimates; if one network estimates several, in the order of its output. */
    stems: z.array(z.enum(stemNames)),
    audio: z.looseObject({
      sampleRate: z.number().int().positive(),
      channels: z.union([z.literal(1), z.literal(2)]),
    }),
  })
  .superRefine(({ architecture, stems, audio }, context) => {
    const findsBeats = architecture === beatArchitecture
    if (findsBeats !== (stems.length === 0))
      context.addIssue({ code: 'custom', path: ['stems'], message: findsBeats ? 'must be empty' : 'must name a stem' })
    if (audio.channels !== (findsBeats ? 1 : 2))
      context.addIssue({
        code: 'custom',
        path: ['audio', 'channels'],
        message: `must be ${findsBeats ? 1 : 2} for the architecture ${architecture}`,
      })
  })

export type Manifest = z.infer<typeof manifestSchema>

export interface Model {
  manifest: Manifest
  /** Path of the (first) ONNX file. */
  path: string
  /** Paths of all its ONNX files, in the architecture's order. */
  paths: readonly string[]
}

/** Folder of the bundled model. */
export const embeddedModelFolder = fileURLToPath(packageFile('models/embedded/'))

/** Whether this is the folder of the bundled model. */
export function isBuiltIn(folder: string): boolean {
  return resolve(folder) === resolve(embeddedModelFolder)
}

const checked = new Map<string, Promise<string>>()

/**
 * Reads the model in a folder and checks its files against the manifest's sizes and hashes, once per process and file
 * version.
 *
 * @throws StemworkError `INVALID_OPTIONS` when the folder holds no valid model
 */
export async function loadModel(folder: string): Promise<Model> {
  return checkModel(folder, await readManifest(folder))
}

/** The same, with a manifest that was already read. */
export async function checkModel(folder: string, manifest: Manifest): Promise<Model> {
  const path = await checkedPath(folder, manifest)
  const paths = [path]
  for (const file of manifest.moreFiles ?? []) paths.push(await checkedPath(folder, file))
  return { manifest, path, paths }
}

/**
 * What an architecture needs from the manifest beyond the common fields.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the field that is wrong
 */
export function architectureParameters<Schema extends z.ZodType>(manifest: Manifest, schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(manifest)
  if (parsed.success) return parsed.data
  const issue = firstIssueText(parsed.error, 'manifest')
  throw new StemworkError(
    'INVALID_OPTIONS',
    `The manifest of model ${manifest.name} does not fit its architecture: ${issue}. Correct it.`,
    {
      cause: parsed.error,
    },
  )
}

async function readManifest(folder: string): Promise<Manifest> {
  let content: unknown
  try {
    content = JSON.parse(await readFile(join(folder, 'model.json'), 'utf8'))
  } catch (error) {
    throw invalid(folder, 'its model.json is missing or is not valid JSON', error)
  }
  const parsed = manifestSchema.safeParse(content)
  if (!parsed.success) {
    throw invalid(folder, `in its model.json, ${firstIssueText(parsed.error, 'manifest')}`, parsed.error)
  }
  return parsed.data
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
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  const found = hash.digest('hex')
  if (found !== expected.sha256) throw invalid(folder, `${file} has the sha256 ${found}; expected ${expected.sha256}`)
  return path
}

function invalid(folder: string, reason: string, cause?: unknown): StemworkError {
  return new StemworkError(
    'INVALID_OPTIONS',
    `The model cannot be used: ${reason}. Install it again or choose another model.`,
    {
      details: { folder },
      cause,
    },
  )
}
