import { json } from 'node:stream/consumers'
import { z } from 'zod'
import { StemworkError } from '../../errors.js'
import { deploymentKey } from '../../job/blob-keys.js'
import type { BlobStore } from '../../ports/blob-store.js'
import type { SweepPorts } from './sweep.js'

/** Content of the marker: the job store to which the files belong, and its last pass over them. */
const markerSchema = z.object({ deployment: z.string(), pass: z.number().int() })
type Marker = z.infer<typeof markerSchema>
/** Pass number while the operator must decide: a restored store would eventually exceed any other number. */
const unreachedPass = Number.MAX_SAFE_INTEGER

/** `undefined`: no pass is due. `now`: its start, by the clock of the files' times. */
export type FilePass = { isOwn: true; now: number } | { isOwn: false; problem: string } | undefined

/**
 * Begins a pass over all files, and checks whether this job store may remove any: it must be the same store as before,
 * and not an older copy.
 */
export async function beginFilePass({ jobs, blobs, logger }: SweepPorts, everyMs: number): Promise<FilePass> {
  // Read before the pass begins, so that a store that was not restored is always ahead of the marker.
  const seen = await read(blobs)
  const begun = await jobs.beginFilePass(everyMs)
  if (!begun) return undefined
  if (seen && seen.deployment !== begun.deployment) {
    const problem =
      'The files belong to another job store, so none was removed. Give each deployment a folder or bucket prefix ' +
      'of its own. If this store replaces the other, delete the blob `deployment`.'
    logger.error({ key: deploymentKey, files: seen.deployment, jobs: begun.deployment }, problem)
    return { isOwn: false, problem }
  }
  if (seen && seen.pass >= begun.pass) {
    const problem =
      'The job store is older than the files: it was restored from a backup and does not know the later jobs. No ' +
      'file was removed. If the files of unknown jobs may be deleted, delete the blob `deployment`.'
    logger.error({ key: deploymentKey, files: seen.pass, jobs: begun.pass }, problem)
    if (seen.pass !== unreachedPass) await write(blobs, { ...seen, pass: unreachedPass })
    return { isOwn: false, problem }
  }
  try {
    await write(blobs, begun, seen === undefined)
  } catch (error) {
    // Another process was first; the next pass reads its marker.
    if (StemworkError.is(error) && error.code === 'ALREADY_EXISTS') return undefined
    throw error
  }
  const marker = await blobs.stat(deploymentKey)
  return marker && { isOwn: true, now: marker.modifiedAt }
}

async function write(blobs: BlobStore, marker: Marker, ifAbsent = false): Promise<void> {
  await blobs.put(deploymentKey, JSON.stringify(marker), { contentType: 'application/json', ifAbsent })
}

async function read(blobs: BlobStore): Promise<Marker | undefined> {
  const found = await blobs.get(deploymentKey)
  return found && markerSchema.parse(await json(found.body))
}
