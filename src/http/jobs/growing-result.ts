import { attachment } from '../../core/engine/job/attachment.js'
import type { GrowingResult } from '../../core/engine/engine.js'
import type { JobRecord } from '../../core/engine/job/job.js'
import { type ApiAnswer, empty } from '../routing/answer.js'
import type { KeyedCall } from '../routing/call.js'
import { notFound, Problem } from '../routing/problem.js'
import { paced } from '../routing/paced-stream.js'
import { whilePermitted } from '../routing/permission.js'
import { tooManyFollowers } from './job-events.js'
import { jobView } from './job-view.js'

/**
 * Returns a result while its job runs: all of it as it grows, or the available part of a range. For an ended job,
 * redirects to the result.
 */
export async function answerGrowing(call: KeyedCall, job: JobRecord, output: string): Promise<ApiAnswer> {
  if (job.status === 'SUCCEEDED') {
    const location = (await jobView(job, call)).result?.[output]
    if (location !== undefined && URL.canParse(location)) return empty(307, { location, 'cache-control': 'no-store' })
  }
  const result = await call.service.engine.growingResult(job, output)
  return answerFile(call, job, { result, range: call.request.headers.get('range') ?? '' })
}

/** Returns the peaks of a growing result, or the available part of a range. */
export async function answerGrowingPeaks(call: KeyedCall, job: JobRecord, output: string): Promise<ApiAnswer> {
  const result = await call.service.engine.growingResult(job, output, { ofPeaks: true })
  return answerFile(call, job, { result, range: call.request.headers.get('range') ?? 'bytes=0-' })
}

async function answerFile(
  call: KeyedCall,
  job: JobRecord,
  { result, range }: { result: GrowingResult | undefined; range: string },
): Promise<ApiAnswer> {
  if (!result) throw notHere(job, call.service.engine.isRunningHere(job.id))
  // A client may disconnect before anything is read.
  const { signal } = call.request
  signal.addEventListener('abort', () => void result.close(), { once: true })
  if (signal.aborted) await result.close()
  const headers: Record<string, string> = {
    'content-type': result.contentType,
    'content-disposition': attachment(result.fileName),
    'accept-ranges': 'bytes',
    // Compression by a host would deliver it in large blocks, and a range would not match that of the file.
    'cache-control': 'no-store, no-transform',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  }
  const [, first, last] = /^bytes=(\d{1,15})-(\d{0,15})$/.exec(range) ?? []
  const { options, turns, watch } = call.service
  const { idleMs } = options.limits
  const app = call.caller.id
  if (call.request.method === 'HEAD') await result.close()
  if (first === undefined) {
    if (!watch.hasRoom(app)) {
      await result.close()
      throw tooManyFollowers(call)
    }
    const source = whilePermitted(call, (signal) => paced(turns, app, watch.counted(app, result.follow(signal))))
    return { status: 200, headers, body: { source, idleMs } }
  }
  return partOf(call, result, { headers, start: Number(first), last })
}

async function partOf(
  call: KeyedCall,
  result: GrowingResult,
  { headers, start, last = '' }: { headers: Record<string, string>; start: number; last?: string },
): Promise<ApiAnswer> {
  const end = Math.min(last === '' ? Infinity : Number(last), result.bytes - 1)
  if (start > end) {
    await result.close()
    const message = `The file has only ${result.bytes} bytes so far. Ask again when the job has made progress.`
    throw new Problem('RANGE_NOT_SATISFIABLE', message, { headers: { 'retry-after': '1' } })
  }
  // Peaks are a part, what there is so far, even for a request without a range.
  const status = call.request.headers.has('range') ? 206 : 200
  if (status === 206) headers['content-range'] = `bytes ${start}-${end}/*`
  headers['content-length'] = String(end - start + 1)
  if (call.request.method === 'HEAD') return empty(status, headers)
  const { downloads, options, turns } = call.service
  const app = call.caller.id
  try {
    const slot = downloads.take(app)
    const source = paced(turns, app, result.part(start, end))
    return { status, headers, body: { source, idleMs: options.limits.idleMs, slot } }
  } catch (error) {
    await result.close()
    throw error
  }
}

function notHere(job: JobRecord, isRunningHere: boolean): Problem {
  if (job.status === 'STARTED' && !isRunningHere) {
    return new Problem(
      'NOT_FOUND',
      'The job runs on another machine of the service, so its results can be read here only after it has ended. ' +
        'Follow its events, or send Prefer: wait.',
      { reason: 'elsewhere', headers: { 'retry-after': '15' } },
    )
  }
  if (job.status === 'QUEUED' || job.status === 'STARTED') {
    return new Problem(
      'NOT_FOUND',
      'There is nothing of this result yet: the job has not started to write it. Ask again, or wait for the job to ' +
        'end.',
      { reason: 'not_begun', headers: { 'retry-after': '1' } },
    )
  }
  return notFound('The job has ended without such a result file. Check its `result` and `error`.')
}
