import { manyJobs, type ManyJobs } from './batch.js'
import { Connection, type ClientOptions } from './connection.js'
import type { AnyOffer, Offer, OffersOf } from './offer.js'
import { singleJobs, type SingleJobs } from './single-jobs.js'

export { ClientError } from './client-error.js'
export type { ClientOptions, RequestOptions } from './connection.js'
export type { Download, DownloadOptions } from './download.js'
export type { FollowOptions } from './follow.js'
export type { ApiKey, IssuedKey, NewKey } from './key.js'
export type { WebhookReceiver } from './receiver.js'
export type { UsageQuery, UsageTotal } from './usage.js'
export type { Batch, BulkReport, ManyJobs, NewBatch } from './batch.js'
export { hasEnded } from './job.js'
export type {
  Archive,
  Job,
  JobError,
  JobFile,
  JobPage,
  JobProgress,
  JobStatus,
  NewJob,
  NewJobOf,
  Peaks,
  Workflow,
  WorkflowSummary,
} from './job.js'
export type { JobFilter, JobFilters } from './job-filters.js'
export type { JobLink, NewJobLink } from './job-link.js'
export type { JobId, Offer, OffersOf } from './offer.js'
export type { UploadOptions } from './upload.js'
export type { TransferOptions, TransferProgress, UploadSource } from './upload-source.js'
export type { GrowingResults, WaitOptions } from './wait.js'
export type { CreateOptions, PeaksOptions, SingleJobs } from './single-jobs.js'

/**
 * All methods throw `ClientError`, the signal's reason when it fires, or what a callback throws. If the client knows
 * the engine's type, methods that take the id of a new job return that workflow's params and results.
 */
export interface Client<Offered extends AnyOffer = Offer> extends SingleJobs<Offered>, ManyJobs<Offered> {}

/**
 * A client of the service's HTTP interface, for browsers and Node, with no dependency beyond `fetch`. Retries
 * temporarily refused requests (429, 503) and broken connections, as `Retry-After` asks.
 *
 * @example
 * const client = createClient({ baseUrl: 'https://stems.example.org/v1', apiKey })
 * const { downloadUrl } = await client.upload(file, { onProgress: ({ bytes }) => show(bytes) })
 * const { id } = await client.createJob({
 *   workflow: 'service/stems-vocals-accompaniment',
 *   params: { inputUrl: downloadUrl },
 * })
 * const job = await client.waitForJob(id)
 * if (job.result) await save(await (await client.download(job.result.vocals)).blob())
 *
 * @example The compiler checks params and knows the names of results by the engine's type.
 * import type { engine } from './server.js'
 * const client = createClient<typeof engine>({ baseUrl, apiKey })
 */
export function createClient<Engine = unknown>(options: ClientOptions): Client<OffersOf<Engine>>
export function createClient(options: ClientOptions): Client {
  const connection = new Connection(options ?? {})
  return { ...singleJobs(connection, options.fetch !== undefined), ...manyJobs(connection) }
}
