import { attemptPrefix } from '../../job/blob-keys.js'
import type { JobOutput, JobRecord } from '../../job/job.js'
import type { EngineOptions } from '../../options.js'
import type { BlobStore } from '../../ports/blob-store.js'
import { putCopy } from '../../ports/put-copy.js'
import type { WorkResult } from '../../ports/runner.js'
import { copyResult } from './copy-results.js'

export interface PublishContext {
  blobs: BlobStore
  /** For copies to the client's URLs. */
  policy: EngineOptions['fetch']
  signal: AbortSignal
  /** Called before each file. */
  onFile(): void
  throughOutage<Result>(work: () => Promise<Result>): Promise<Result>
}

/** Stores the outputs under this claim's prefix. They become the job's results when the record names them. */
export async function publishOutputs(
  result: WorkResult,
  job: JobRecord,
  { blobs, policy, signal, onFile, throughOutage }: PublishContext,
): Promise<Record<string, JobOutput>> {
  const outputs: Record<string, JobOutput> = {}
  const files = Object.entries(result.outputs)
  for (const [index, [name, file]] of files.entries()) {
    onFile()
    const { bytes, contentType, fileName, downloadName } = file
    const copyTo = job.copyResultsTo[name]
    if (copyTo !== undefined) {
      await copyResult(name, file, copyTo, { signal, policy })
      outputs[name] = { key: '', bytes, contentType, fileName, copied: true }
      continue
    }
    const usual = attemptPrefix(job) + fileName
    const isTaken = Object.values(outputs).some((other) => other.key.toLowerCase() === usual.toLowerCase())
    const key = isTaken ? `${attemptPrefix(job)}${name}-${fileName}` : usual
    const options = { contentType, signal, app: job.app }
    // A composition may publish a file of a step under several names: only the last may take it away.
    const isNeeded = files.slice(index + 1).some(([, { path }]) => path === file.path)
    await throughOutage(() =>
      blobs.putFile && !isNeeded ? blobs.putFile(key, file.path, options) : putCopy(blobs, key, file.path, options),
    )
    outputs[name] = { key, bytes, contentType, fileName, downloadName }
  }
  return outputs
}
