import { json } from 'node:stream/consumers'
import { z } from 'zod'
import { StemworkError } from '../../errors.js'
import { deploymentKey } from '../../job/blob-keys.js'
import type { BlobStore } from '../../ports/blob-store.js'
import type { SweepPorts } from './sweep.js'

/** Which job store the files belong to, and its last pass over them. */
const markerSchema = z.object({ deployment: z.string(), pass: z.number().int() })
type Marker = z.infer<typeof markerSchema>
/** Of files that wait for the operator: a store that was restored would catch up with any other pass. */
const unreachedPass = Number.MAX_SAFE_INTEGER

/** `undefined`: no pass is due. `now`: when it began, by the clock that gives the files their times. */
export type FilePass = { isOwn: true; now: number } | { isOwn: false; problem: string } | undefined

/**
 * Begins a pass over all files, and tells whether this job store may judge them: it must be the same store as before,
 * and not an older copy.
 */
export async function beginFilePass({ jobs, blobs, logger }: SweepPorts, everyMs: number): Promise<FilePass> {
  // In this order, a store that was not restored is always ahead of the marker.
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
