import { badAnswer, ClientError, isOutage } from './client-error.js'
import type { Connection, RequestOptions } from './connection.js'
import { eventValue, readEvents } from './event-stream.js'
import { hasEnded, type Job, jobPath, type JobProgress } from './job.js'
import { backOff, pause } from './pause.js'

/** By result name: the bytes that can be read so far (`client.growing` with a `range`), and the address. */
export type GrowingResults = Record<string, { bytes: number; url: string }>

export interface WaitOptions extends RequestOptions {
  /** Called at once and at each observed change. */
  onProgress?(progress: JobProgress): void
  /** Called when more of an unfinished result can be read; only over event streams of the machine that runs the job. */
  onGrowing?(results: GrowingResults): void
  /** `polling` for networks that block event streams. Default: `events`, falling back to polling. */
  by?: 'events' | 'polling'
}

const polling = { firstMs: 1000, longestMs: 5000 }
/** After this many event streams that broke before their first event, the network is assumed to block them. */
const maxBrokenStreams = 2

/**
 * Resolves with the ended job, SUCCEEDED or FAILED. Retries through outages until the service recovers.
 *
 * @throws ClientError `NOT_FOUND` once the job is deleted, `UNAUTHORIZED` and similar errors; the signal's reason
 */
export async function waitForJob(connection: Connection, id: string, options: WaitOptions = {}): Promise<Job> {
  let brokenStreams = options.by === 'polling' ? maxBrokenStreams : 0
  for (let attempt = 0; ; attempt++) {
    let changes = 0
    const report = (progress: JobProgress) => {
      changes++
      options.onProgress?.(progress)
    }
    const isStreaming = brokenStreams < maxBrokenStreams
    try {
      const job = isStreaming
        ? await follow(connection, id, { ...options, report })
        : await poll(connection, id, report, options.signal)
      if (job) return job
    } catch (error) {
      options.signal?.throwIfAborted()
      if (!isOutage(error)) throw error
    }
    if (isStreaming && changes === 0) brokenStreams++
    if (changes > 0) attempt = 0
    await pause(backOff(attempt, polling), options.signal)
  }
}

/** Undefined when the stream ended before the job did. */
async function follow(
  connection: Connection,
  id: string,
  { report, onGrowing, signal }: WaitOptions & { report(job: Job): void },
): Promise<Job | undefined> {
  for await (const event of readEvents(connection, `${jobPath(id)}/events`, { signal })) {
    if (event.event === 'deleted') throw deleted()
    if (event.event === 'growing') onGrowing?.(eventValue<GrowingResults>(event))
    if (event.event !== 'job') continue
    const job = eventValue<Job>(event)
    report(job)
    if (hasEnded(job)) return job
  }
  return undefined
}

async function poll(
  connection: Connection,
  id: string,
  report: (job: JobProgress) => void,
  signal: AbortSignal | undefined,
): Promise<Job> {
  const path = jobPath(id)
  let last: JobProgress | undefined
  for (let attempt = 0; ; attempt++) {
    const value = await connection.value<JobProgress>(`${path}/status`, { signal })
    if (typeof value.status !== 'string') throw badAnswer(200, 'it is not the status of a job')
    const isNews =
      !last || last.status !== value.status || last.progress !== value.progress || last.stage !== value.stage
    if (isNews) report(value)
    if (hasEnded(value)) return await connection.value<Job>(path, { signal })
    if (isNews) attempt = 0
    last = value
    await pause(backOff(attempt, polling), signal)
  }
}

function deleted(): ClientError {
  return new ClientError('The job was deleted while waiting for it.', { code: 'NOT_FOUND', status: 404 })
}
