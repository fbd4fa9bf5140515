import { join } from 'node:path'
import { fetchInput } from '../../fetch/fetch-input.js'
import { nameInUrl } from '../../job/download-name.js'
import type { JobRecord } from '../../job/job.js'
import type { InputFile } from '../../ports/runner.js'
import { checkInput, issueTexts } from '../../workflow/check-input.js'
import type { Workflow } from '../../workflow/workflow.js'
import type { AttemptCheckpoint } from './attempt-checkpoint.js'
import { readUpload } from './read-upload.js'
import type { SharedParts } from '../../engine-parts.js'

interface InputSources extends Pick<SharedParts, 'blobs' | 'options'> {
  job: JobRecord
  checkpoint: AttemptCheckpoint
  signal: AbortSignal
  /** Factor on the minimum rate, as in `FetchTimeouts`. */
  haste?: () => number
  throughOutage<Result>(work: () => Promise<Result>): Promise<Result>
}

/** Checks the params of the job again: the node that accepted it may have other options or another version. */
export function paramsOf({ id, params }: Workflow, job: JobRecord): Record<string, unknown> {
  const checked = checkInput(params, job.params)
  if (checked.success) return checked.data as Record<string, unknown>
  throw new Error(
    `On this node, ${id} does not take the params of the job, which another one has accepted. ` +
      `${issueTexts(checked, 'params').join('; ')}. Give all nodes the same options and version.`,
  )
}

/** Whether an input of the job must be downloaded from a URL of its client. */
export function needsDownload(workflow: Workflow | undefined, { uploads, params }: JobRecord): boolean {
  return workflow?.inputs.some((param) => uploads[param] === undefined && typeof params[param] === 'string') ?? false
}

/**
 * Fetches the job's input files into `directory`: uploads from the blob store, downloads from an earlier attempt or
 * otherwise from their URLs.
 *
 * @throws StemworkError as `readUpload` and `fetchInput` do; the signal's reason.
 */
export async function fetchInputs(
  { inputs: params }: Workflow,
  directory: string,
  { job, blobs, options, checkpoint, signal, haste, throughOutage }: InputSources,
): Promise<Record<string, InputFile>> {
  const inputs: Record<string, InputFile> = {}
  const maxBytes = options.limits.maxFileBytes
  const { totalMs, minBytesPerSecond } = options.inputs
  for (const [index, param] of params.entries()) {
    const path = join(directory, `input-${param}`)
    const key = job.uploads[param]
    const url = job.params[param]
    if (key !== undefined) {
      const { bytes } = await throughOutage(() => readUpload(blobs, key, path, { signal, maxBytes }))
      inputs[param] = { path, bytes }
    } else if (typeof url === 'string') {
      const kept = await throughOutage(() => checkpoint.fetchInput(index, path, signal))
      const { bytes } =
        kept ??
        (await fetchInput(url, path, {
          signal,
          maxBytes,
          policy: options.fetch,
          timeouts: { totalMs, minBytesPerSecond, ...(haste && { haste }) },
        }))
      inputs[param] = { path, bytes, name: nameInUrl(url) }
      if (!kept) checkpoint.noteDownload(index, inputs[param])
    }
  }
  return inputs
}
