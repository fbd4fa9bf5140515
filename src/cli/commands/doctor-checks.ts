import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rmdir, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { StemworkError } from '../../core/engine/errors.js'
import { newJob } from '../../core/engine/job/new-job.js'
import type { BlobStore } from '../../core/engine/ports/blob-store.js'
import type { JobStore } from '../../core/engine/ports/job-store.js'
import { within } from '../../core/engine/ports/within.js'
import { findProgram } from '../../core/engine/program/find-program.js'
import { causesOf, serverRemedy } from '../terminal/server-failure.js'
import { nodeVersionRemedy } from '../terminal/node-version.js'
import { systemErrorText } from '../terminal/system-error.js'

/** Result of a check. A `note` is no fault: something optional is missing, or worth knowing. */
export interface Finding {
  check: string
  status: 'ok' | 'note' | 'problem'
  found: string
  /** Remedy. */
  todo?: string
}

export type Outcome = Omit<Finding, 'check'>

const answerMs = 15_000
const gibibyte = 1024 ** 3
/** Enough for a few long songs, with their scratch files. */
const enoughBytes = 2 * gibibyte
const maxClockDifferenceMs = 5_000

/**
 * Runs a check. An error or a missing answer is a problem.
 *
 * @param options.tried the server that was contacted
 */
export async function examine(
  check: string,
  work: () => Promise<Outcome>,
  { timeoutMs = answerMs, tried }: { timeoutMs?: number; tried?: string } = {},
): Promise<Finding> {
  const late = () => new Error(`No answer within ${timeoutMs / 1000} s. Check the server and the network.`)
  try {
    return { check, ...(await within(work(), timeoutMs, late)) }
  } catch (error) {
    const found = failureText(error)
    const todo = serverRemedy(error)
    return {
      check,
      status: 'problem',
      found: tried === undefined || found.startsWith(tried) ? found : `${tried}: ${found}`,
      ...(todo === undefined ? {} : { todo }),
    }
  }
}

export function nodeVersion(version = process.versions.node): Outcome {
  const todo = nodeVersionRemedy(version)
  return todo === undefined ? { status: 'ok', found: version } : { status: 'problem', found: version, todo }
}

export async function ffmpeg(): Promise<Outcome> {
  try {
    const { stdout } = await promisify(execFile)(await findProgram({ name: 'ffmpeg' }), ['-version'], {
      timeout: 10_000,
    })
    return { status: 'ok', found: stdout.split('\n', 1)[0] ?? 'found' }
  } catch (error) {
    const what =
      StemworkError.is(error) && error.code === 'MISSING_DEPENDENCY'
        ? 'not found'
        : `does not run: ${failureText(error)}`
    return { status: 'note', found: `${what}; only workflows of your own that call it need it` }
  }
}

/** Checks that files can be created in the folder, or where it will be, and that there is enough space. */
export async function folder(path: string, { isPrivate }: { isPrivate: boolean }): Promise<Outcome> {
  const existing = await nearest(resolve(path))
  const made = await mkdtemp(join(existing, '.stemwork-doctor-')).catch((error: NodeJS.ErrnoException) => {
    // Names the folder, not the file that was tried in it.
    error.path = existing
    throw error
  })
  await rmdir(made)
  const { bavail, bsize } = await statfs(existing)
  const freeBytes = bavail * bsize
  const room = `${path}, ${(freeBytes / gibibyte).toFixed(1)} GiB free`
  const { mode } = await stat(existing)
  if (freeBytes < enoughBytes)
    return {
      status: 'problem',
      found: room,
      todo:
        'Free some space, or choose a folder on another disk: a job needs up to twice the size of its input and ' +
        'results.',
    }
  if (isPrivate && existing === resolve(path) && process.platform !== 'win32' && (mode & 0o077) !== 0)
    return { status: 'problem', found: `${room}, and other users can read it`, todo: `chmod 700 ${path}` }
  return { status: 'ok', found: room }
}

/** Writes, reads and removes a small file. */
export async function blobs(store: BlobStore): Promise<Outcome> {
  const key = `doctor/${randomUUID()}`
  try {
    await store.put(key, 'stemwork doctor', { contentType: 'text/plain' })
    const blob = await store.get(key)
    let bytes = 0
    for await (const chunk of blob?.body ?? []) bytes += chunk.byteLength
    if (bytes !== 15) throw new Error(`A file of 15 bytes was stored, and ${bytes} came back.`)
  } catch (error) {
    // The first failure is the most informative.
    await store.delete(key).catch(() => {})
    throw error
  }
  await store.delete(key)
  return { status: 'ok', found: 'a file was stored, read and removed' }
}

/** Writes an ended job, which no worker takes, and removes it. Its times are by the store's clock. */
export async function jobStore(store: JobStore): Promise<Outcome> {
  const queued = await store.count({ statuses: ['QUEUED'] })
  const names = { app: 'stemwork-doctor', workflow: 'stemwork/doctor', name: null, batchName: null }
  const rest = { params: {}, uploads: {}, metadata: {}, copyResultsTo: {}, webhook: null, idempotency: null }
  const ended = newJob({ ...names, ...rest })
  const sentAt = Date.now()
  const { job } = await store.create({ ...ended, status: 'FAILED', completedAt: sentAt, expired: true })
  const answeredAt = Date.now()
  await store.apply(job.id, { kind: 'delete' })
  await store.purge({ id: job.id })
  const differenceMs = job.createdAt < sentAt ? job.createdAt - sentAt : Math.max(0, job.createdAt - answeredAt)
  if (Math.abs(differenceMs) > maxClockDifferenceMs) {
    return {
      status: 'problem',
      found: `its clock differs by ${(differenceMs / 1000).toFixed(1)} s from this machine's`,
      todo: 'Synchronize both clocks with NTP: links and retention depend on them.',
    }
  }
  return {
    status: 'ok',
    found: `a job was stored and removed in ${answeredAt - sentAt} ms; jobs that wait: ${queued}; its clock agrees`,
  }
}

async function nearest(path: string): Promise<string> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (found?.isDirectory()) return path
  if (found) throw new Error(`${path} is a file, but a folder is expected. Name another folder.`)
  return await nearest(dirname(path))
}

function failureText(error: unknown): string {
  const texts: string[] = []
  for (const each of causesOf(error)) {
    // The error of several parallel attempts has no message of its own; its first cause says more.
    if (each.message === '') continue
    const isSystem = !StemworkError.is(each) && 'syscall' in each
    texts.push(isSystem ? systemErrorText(each as NodeJS.ErrnoException) : each.message)
  }
  return texts.join(' Cause: ') || String(error)
}
