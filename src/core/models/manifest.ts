import * as z from 'zod'
import { invalidOptions } from '../engine/errors.js'
import { stemNames } from './stems.js'
import { firstIssueText } from '../engine/workflow/check-input.js'

const fileName = z.string().regex(/^[^/\\]+$/, 'must be the name of a file next to the manifest')
const bytes = z.number().int().positive()
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits')

export const weightFileSchema = z.object({ file: fileName, bytes, sha256 })

/** The files of a model: the only part of a pulled model's manifest that is read. */
export const recordedFilesSchema = weightFileSchema.extend({ moreFiles: z.array(weightFileSchema).optional() })

/** Architecture of the models that find beats; they have no stems. */
export const beatArchitecture = 'beat-this'

/** The common fields of a model's `model.json`. Each architecture reads additional fields. */
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

/**
 * Reads the fields that an architecture needs from the manifest beyond the common ones.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the field that is wrong
 */
export function architectureParameters<Schema extends z.ZodType>(manifest: Manifest, schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(manifest)
  if (parsed.success) return parsed.data
  const issue = firstIssueText(parsed.error, 'manifest')
  throw invalidOptions(
    `The manifest of model ${manifest.name} does not fit its architecture: ${issue}. Correct it.`,
    parsed.error,
  )
}
