import { constants } from 'node:fs'
import { type FileHandle, lstat, open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { StemworkError } from '../errors.js'
import type { JobRecord } from '../job/job.js'
import { growingOutputFile, growingPeaksFile } from '../runner/run-folder.js'
import type { JobStore } from '../ports/job-store.js'
import type { WorkflowRegistry } from '../workflow/registry.js'
import type { Dispatcher } from './dispatcher.js'

/** How often to check for new bytes. */
const lookMs = 200
/** The job itself is checked less often. */
const looksForJob = 10
const chunkBytes = 64 * 1024

/** The part of a result that is written so far, of a job that runs in this process. */
export interface GrowingResult {
  readonly contentType: string
  readonly fileName: string
  /** How much can be read so far. */
  readonly bytes: number
  /** Bytes `start` to `end`, both inclusive and already written. Ends the reading. */
  part(start: number, end: number): AsyncIterable<Uint8Array>
  /**
   * The whole file, each byte as soon as it is written. Ends the reading.
   *
   * @throws StemworkError `NOT_FOUND` if the job ends without this result, or is run again
   */
  follow(signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Call it if nothing is read; a second call does nothing. */
  close(): Promise<void>
}

interface GrowingFile {
  job: JobRecord
  output: string
  /** Name of the file in the run's folder. */
  name: string
  directory: string
  fileName: string
  contentType: string
  /** The job as it is now. */
  look(): Promise<JobRecord | undefined>
}

/** See `JobEngine.growingResult`. */
export async function growingResult(
  job: JobRecord,
  output: string,
  { jobs, workflows, dispatcher }: { jobs: JobStore; workflows: WorkflowRegistry; dispatcher: Dispatcher },
  ofPeaks: boolean,
): Promise<GrowingResult | undefined> {
  const workflow = workflows.get(job.workflow)
  const directory = job.status === 'STARTED' ? await dispatcher.scratchOf(job) : undefined
  if (!workflow || directory === undefined) return undefined
  const declared = workflow.outputs(workflow.params.parse(job.params) as Record<string, unknown>)
  const declaration = Object.hasOwn(declared, output) ? declared[output] : undefined
  if (!declaration) return undefined
  const { fileName, contentType } = declaration
  const file = ofPeaks
    ? { name: growingPeaksFile(output, fileName), fileName: `${output}.dat`, contentType: 'application/octet-stream' }
    : { name: growingOutputFile(output, fileName), fileName, contentType }
  return openGrowingResult({ ...file, job, output, directory, look: () => jobs.get(job.id) })
}

/** `undefined`: the file does not exist here, or it is complete and about to be published. */
async function openGrowingResult({
  job,
  output,
  name,
  directory,
  fileName,
  contentType,
  look,
}: GrowingFile): Promise<GrowingResult | undefined> {
  const path = join(directory, name)
  const opened = await openFile(path)
  if (!opened) return undefined
  const file: FileHandle = opened
  const { size: bytes } = await file.stat()

  /** Its size; `undefined` once the file has its final name, because the store may then add bytes to it. */
  async function growingBytes(): Promise<number | undefined> {
    const { ino, size } = await file.stat()
    const named = await lstat(path).catch(() => undefined)
    return named?.ino === ino ? size : undefined
  }

  return {
    contentType,
    fileName,
    bytes,
    part: (start, end) => reading(file, (from) => read(file, from, end + 1), start),
    follow: (signal) => reading(file, (from) => followed(from, signal), 0),
    close: () => file.close(),
  }

  async function* followed(start: number, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    let at = start
    for (let looks = 0; ; looks++) {
      const there = await growingBytes()
      if (there !== undefined) {
        yield* read(file, at, there)
        at = Math.max(at, there)
      }
      if (there === undefined || looks % looksForJob === 0) {
        const now = await look()
        const total = now?.status === 'SUCCEEDED' ? now.outputs?.[output]?.bytes : undefined
        if (total !== undefined) return yield* read(file, at, total)
        if (now?.status !== 'STARTED' || now.token !== job.token) throw endedWithout()
      }
      await wait(lookMs, undefined, { signal })
    }
  }
}

async function* reading(
  file: FileHandle,
  source: (start: number) => AsyncIterable<Uint8Array>,
  start: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* source(start)
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

/** A link could expose a file from outside the run; a pipe would hold a thread until its other end is opened. */
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
