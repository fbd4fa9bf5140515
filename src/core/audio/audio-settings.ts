import type { z } from 'zod'
import { StemworkError } from '../engine/errors.js'
import { firstIssueText } from '../engine/workflow/schema-issues.js'
import type { StageContext } from '../engine/workflow/workflow.js'
import { stemsSettingsSchema } from '../separation/workflow/stems-workflow.js'

/** Settings of the workflows that read an audio file and may write one. They mean the same as for stems. */
export const audioSettingsSchema = stemsSettingsSchema.pick({
  format: true,
  formats: true,
  decoders: true,
  keepTags: true,
})

export type AudioSettings = z.infer<typeof audioSettingsSchema>

/** @throws StemworkError `INVALID_OPTIONS` naming the setting that is wrong */
export function checkedSettings(workflow: string, settings: unknown): AudioSettings {
  const checked = audioSettingsSchema.safeParse(settings)
  if (checked.success) return checked.data
  const issue = firstIssueText(checked.error, 'settings')
  throw new StemworkError('INVALID_OPTIONS', `Workflow ${workflow}: ${issue}.`)
}

/** A workflow's stage in the host's process: only the child process loads the code that does the work. */
export function onlyInChild(workflow: string) {
  return async (_context: StageContext<never>): Promise<void> => {
    throw new StemworkError(
      'INTERNAL_ERROR',
      `The workflow ${workflow} only runs in a child process, because it would block the host. Use the process runner.`,
    )
  }
}
