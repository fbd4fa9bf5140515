import { join } from 'node:path'
import { z } from 'zod'
import { StemworkError } from '../engine/errors.js'
import { readJson, writeJson } from './cache.js'

/** Stored with the model's files in the cache. */
export const acceptanceFile = 'licence-accepted.json'

const acceptanceSchema = z.object({ terms: z.string(), acceptedAt: z.iso.datetime() })

/** Whether exactly these terms were already accepted. */
export async function areTermsAccepted(folder: string, terms: string): Promise<boolean> {
  const accepted = acceptanceSchema.safeParse(await readJson(join(folder, acceptanceFile)))
  return accepted.success && accepted.data.terms === terms
}

export async function rememberAcceptance(folder: string, terms: string): Promise<void> {
  await writeJson(join(folder, acceptanceFile), { terms, acceptedAt: new Date().toISOString() })
}

export function notAccepted(name: string, terms: string): StemworkError {
  return new StemworkError(
    'MODEL_UNAVAILABLE',
    `${terms} To accept these terms and download the model, run: stemwork models pull ${name} --accept-licence`,
    { details: { model: name, terms } },
  )
}
