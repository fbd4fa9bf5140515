import { constants } from 'node:fs'
import { type FileHandle, lstat, open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { StemworkError } from '../errors.js'
import type { JobRecord } from '../job/job.js'
import { growingOutputFile, growingPeaksFile } from '../runner/run-folder.js'
import type { Dispatcher } from './dispatcher.js'
import type { SharedParts } from '../engine-parts.js'

/** How often to check for new bytes. */
const lookMs = 200
/** The job's record is read only in every tenth of these checks. */
const looksForJob = 10
const chunkBytes = 64 * 1024

/** The part of a result that is already written, of a job that runs in this process. */
export interface GrowingResult {
  readonly contentType: string
  readonly fileName: string
  /** Bytes that can be read so far. */
  readonly bytes: number
  /** Reads bytes `start` to `end`, both inclusive and already written; then the file is closed. */
  part(start: number, end: number): AsyncIterable<Uint8Array>
  /**
   * Reads the whole file, each byte as soon as it is written; then the file is closed.
   *
   * @throws StemworkError `NOT_FOUND` if the job ends without this result, or is run again
   */
  follow(signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Call if nothing is read; a second call does nothing. */
  close(): Promise<void>
}

export async function growingResult(
  job: JobRecord,
  output: string,
  { jobs, workflows, dispatcher }: Pick<SharedParts, 'jobs' | 'workflows'> & { dispatcher: Dispatcher },
  ofPeaks: boolean,
): Promise<GrowingResult | undefined> {
  const workflow = workflows.get(job.workflow)
  const directory = job.status === 'STARTED' ? await dispatcher.scratchOf(job) : undefined
  if (!workflow || directory === undefined) return undefined
  const declared = workflow.outputs(workflow.params.parse(job.params) as Record<string, unknown>)
  const declaration = Object.hasOwn(declared, output) ? declared[output] : undefined
  if (!declaration) return undefined
  const { fileName, contentType } = declaration
  const path = join(directory, (ofPeaks ? growingPeaksFile : growingOutputFile)(output, fileName))
  const file = await openFile(path)
  // The file does not exist here, or is complete and about to be published.
  if (!file) return undefined
  const { size: bytes } = await file.stat()
  const look = async () => {
    const now = await jobs.get(job.id)
    const total = now?.status === 'SUCCEEDED' ? now.outputs?.[output]?.bytes : undefined
    if (total === undefined && (now?.status !== 'STARTED' || now.token !== job.token)) throw endedWithout()
    return total
  }
  return {
    contentType: ofPeaks ? 'application/octet-stream' : contentType,
    fileName: ofPeaks ? `${output}.dat` : fileName,
    bytes,
    part: (start, end) => closing(file, read(file, start, end + 1)),
    follow: (signal) => closing(file, followed(file, path, look, signal)),
    close: () => file.close(),
  }
}

/** @param look returns the result's bytes once the job has succeeded @throws if the job ends without the result */
async function* followed(
  file: FileHandle,
  path: string,
  look: () => Promise<number | undefined>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  let at = 0
  for (let looks = 0; ; looks++) {
    const there = await growingBytes(file, path)
    if (there !== undefined) {
      yield* read(file, at, there)
      at = Math.max(at, there)
    }
    if (there === undefined || looks % looksForJob === 0) {
      const total = await look()
      if (total !== undefined) return yield* read(file, at, total)
    }
    await wait(lookMs, undefined, { signal })
  }
}

/** Size of the file; `undefined` once it has its final name, because the store may then add bytes to it. */
async function growingBytes(file: FileHandle, path: string): Promise<number | undefined> {
  const { ino, size } = await file.stat()
  const named = await lstat(path).catch(() => undefined)
  return named?.ino === ino ? size : undefined
}

async function* closing(
  file: FileHandle,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* chunks
  } finally {
    await file.close()
  }
}

async function* read(file: FileHandle, from: number, until: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = from; at < until;) {
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, until - at))
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
    if (bytesRead === 0) throw endedWithout()
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}

/** A link could expose a file from outside the run; a pipe would block a thread until its other end is opened. */
const openFlags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

async function openFile(path: string): Promise<FileHandle | undefined> {
  const file = await open(path, openFlags).catch(() => undefined)
  if (!file) return undefined
  if ((await file.stat()).isFile()) return file
  await file.close()
  return undefined
}

function endedWithout(): StemworkError {
  return new StemworkError('NOT_FOUND', 'The job has ended without this result, or is being run again.')
}
