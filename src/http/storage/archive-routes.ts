import { z } from 'zod'
import { attachment } from '../../core/engine/job/attachment.js'
import type { JobOutput, JobRecord } from '../../core/engine/job/job.js'
import { readSlices, sliceRows } from '../../core/engine/queries/job-slices.js'
import { type ApiAnswer, empty, json } from '../routing/answer.js'
import type { Call, KeyedCall } from '../routing/call.js'
import { invalidField, notFound, Problem } from '../routing/problem.js'
import { defineRoute } from '../routing/route.js'
import { paced } from '../routing/paced-stream.js'
import { grantOf, refuseExpired } from './storage-link.js'
import { zipBytes, type ZipEntry, zipStream } from './zip.js'
import type { HttpEngine } from '../http-engine.js'
import { lostResult } from './download.js'
import { downloadName, sentName, songName } from './download-name.js'

/** Most jobs whose results one archive may hold. */
const maxArchiveJobs = 100

/** The result files of jobs as archive entries: for several jobs, in a folder each. */
function archiveEntries(jobs: readonly JobRecord[], blobs: HttpEngine['blobs']): ZipEntry[] {
  const folders = folderNames(jobs)
  return jobs.flatMap((job, index) => {
    const folder = jobs.length > 1 ? `${folders[index]}/` : ''
    return keptOutputs(job).map((output) => ({
      name: folder + downloadName(job, output),
      bytes: output.bytes,
      modifiedAt: new Date(job.completedAt ?? job.createdAt),
      async open() {
        const blob = await blobs.get(output.key, { app: job.app, reuseMemory: true })
        if (!blob) throw new Error(`The result file ${output.key} no longer exists.`)
        return blob.body
      },
    }))
  })
}

/** Outputs that this service still has. */
function keptOutputs(job: JobRecord): JobOutput[] {
  if (job.status !== 'SUCCEEDED' || job.expired) return []
  return Object.values(job.outputs ?? {}).filter(({ copied }) => !copied)
}

/** File name that the archive is offered under. */
function archiveName(jobs: readonly JobRecord[]): string {
  const [first] = jobs
  if (jobs.length === 1 && first) return `${songName(first.name)} - stems.zip`
  const batch = first?.batchName
  const isBatch = batch && jobs.every(({ batchName }) => batchName === batch)
  return `${isBatch ? songName(batch) : `${jobs.length} songs`} - stems.zip`
}

/**
 * A name for each job's folder: with the ending of the file that was sent, where jobs of one name differ in it, and
 * with a number where nothing else tells them apart.
 */
function folderNames(jobs: readonly JobRecord[]): string[] {
  // For macOS and Windows, these are one name.
  const alike = (text: string) => text.normalize('NFC').toLowerCase()
  const sent = new Map<string, Set<string>>()
  for (const { name } of jobs) {
    const song = alike(songName(name))
    sent.set(song, (sent.get(song) ?? new Set()).add(alike(sentName(name))))
  }
  const taken = new Set<string>()
  return jobs.map((job) => {
    const song = songName(job.name)
    const name = sent.get(alike(song))?.size === 1 ? song : sentName(job.name)
    let free = name
    for (let number = 2; taken.has(alike(free)); number++) free = `${name} (${number})`
    taken.add(alike(free))
    return free
  })
}

const jobsSchema = z
  .preprocess((value) => (typeof value === 'string' ? [value] : value), z.array(z.uuid()).min(1).max(maxArchiveJobs))
  .describe(`Ids of jobs; may be repeated, at most ${maxArchiveJobs} times.`)

const archiveSchema = z
  .object({
    url: z.url().describe('A signed link to the ZIP file.'),
    fileName: z.string(),
    bytes: z.number().int().describe('Size of the ZIP file.'),
    jobs: z.number().int().describe('How many jobs have results in it.'),
  })
  .meta({ id: 'Archive' })

export const archiveRoutes = [
  defineRoute({
    route: 'GET /archive',
    operation: 'getArchive',
    summary: 'Get a link to the results of jobs as one ZIP file',
    description:
      'Name the jobs with `job`, or a batch with `batchName` (its newest 100 jobs). Jobs without results are left ' +
      'out. The file is created during the download and is not stored.',
    query: z.strictObject({ job: jobsSchema.optional(), batchName: z.string().min(1).max(255).optional() }),
    answer: { description: 'Where to download the file.', schema: archiveSchema },
    problems: ['NOT_FOUND'],
    async handle(call, { query }) {
      const jobs = (await wantedJobs(call, query)).filter((job) => keptOutputs(job).length > 0)
      if (jobs.length === 0) {
        throw notFound(
          'None of these jobs has result files: they have not succeeded, or their files have expired or were sent ' +
            'elsewhere.',
        )
      }
      const { engine, options, signer } = call.service
      const ids = jobs.map(({ id }) => id)
      const expiresAt = Math.floor(Date.now() / 1000) + options.links.resultSeconds
      const app = call.caller.id
      const signed = signer.sign({ method: 'GET', key: archiveKey(ids), app, expiresAt, maxBytes: 0 })
      for (const id of ids) signed.append('job', id)
      return json({
        url: `${call.baseUrl}/archive/zip?${signed.toString()}`,
        fileName: archiveName(jobs),
        bytes: zipBytes(archiveEntries(jobs, engine.blobs)),
        jobs: jobs.length,
      })
    },
  }),
  defineRoute({
    route: 'GET /archive/zip',
    operation: 'downloadArchive',
    summary: 'Download the results of jobs as one ZIP file',
    description: 'Use the `url` of an archive unchanged.',
    access: 'link',
    answer: { description: 'The file.', contentType: 'application/zip' },
    problems: ['FORBIDDEN', 'NOT_FOUND', 'GONE', 'RATE_LIMITED'],
    handle: (call) => downloadArchive(call),
  }),
]

async function wantedJobs(
  call: KeyedCall,
  { job: ids, batchName }: { job?: string[]; batchName?: string },
): Promise<JobRecord[]> {
  const app = call.caller.id
  if ((ids === undefined) === (batchName === undefined)) throw invalidField('job', 'give either job or batchName')
  if (ids !== undefined) return existing(call, app, [...new Set(ids)])
  const { engine, queries } = call.service
  const jobs: JobRecord[] = []
  const read = () =>
    readSlices(
      { app, batchName, limit: maxArchiveJobs },
      (page) => engine.list(page),
      (some) => void jobs.push(...some),
      (work) => queries.slice(app, work),
    )
  await queries.request(app, read, call.request.signal)
  return jobs
}

async function existing(call: Call, app: string, ids: readonly string[]): Promise<JobRecord[]> {
  const { engine, queries } = call.service
  const jobs: JobRecord[] = []
  for (let start = 0; start < ids.length; start += sliceRows)
    await queries.slice(app, async () => {
      for (const id of ids.slice(start, start + sliceRows)) {
        const job = await engine.get(id, { app })
        if (job) jobs.push(job)
      }
    })
  return jobs
}

/** The key that the link's signature covers: its jobs, in order. */
function archiveKey(ids: readonly string[]): string {
  return `archive/${ids.join(',')}`
}

/** Checked in advance: an answer that has begun could only break off. */
async function refuseLost(jobs: readonly JobRecord[], blobs: HttpEngine['blobs']): Promise<void> {
  for (let start = 0; start < jobs.length; start += sliceRows) {
    const outputs = jobs.slice(start, start + sliceRows).flatMap(keptOutputs)
    const found = await Promise.all(outputs.map(({ key }) => blobs.stat(key)))
    if (found.includes(undefined)) throw lostResult()
  }
}

async function downloadArchive(call: Call): Promise<ApiAnswer> {
  const { engine, options, downloads, turns } = call.service
  const ids = call.search.getAll('job')
  const grant = grantOf(call, 'GET', archiveKey(ids))
  refuseExpired(grant)
  const endTurn = await turns.next(grant.app)
  call.service.limiter.take(grant.app, 'link', call.headers)
  const jobs = (await existing(call, grant.app, ids).finally(endTurn)).filter((job) => keptOutputs(job).length > 0)
  if (jobs.length === 0)
    throw new Problem('GONE', 'The results of these jobs were deleted or have expired. Create the jobs again.')
  await refuseLost(jobs, engine.blobs)
  const entries = archiveEntries(jobs, engine.blobs)
  const headers = {
    'content-type': 'application/zip',
    'content-length': String(zipBytes(entries)),
    'content-disposition': attachment(archiveName(jobs)),
    'cache-control': 'private, no-cache',
    'x-content-type-options': 'nosniff',
  }
  if (call.request.method === 'HEAD') return empty(200, headers)
  const inTurns = entries.map((entry) => ({ ...entry, open: async () => paced(turns, grant.app, await entry.open()) }))
  return {
    status: 200,
    headers,
    body: {
      source: zipStream(inTurns),
      idleMs: options.limits.idleMs,
      reusesMemory: true,
      slot: downloads.take(grant.app),
    },
  }
}
