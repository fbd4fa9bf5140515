import { badAnswer } from './client-error.js'
import type { Connection, RequestOptions } from './connection.js'
import type { Download, DownloadOptions } from './download.js'
import { followJobs, type FollowOptions } from './follow.js'
import { randomKey } from './idempotency-key.js'
import { jobPath as path, segment } from './job.js'
import type { Archive, Job, JobPage, NewJobOf, Peaks, Workflow, WorkflowSummary } from './job.js'
import { type JobFilters, listQuery } from './job-filters.js'
import type { JobLink, NewJobLink } from './job-link.js'
import type { ApiKey, IssuedKey, NewKey } from './key.js'
import type { WebhookReceiver } from './receiver.js'
import type { UsageQuery, UsageTotal } from './usage.js'
import type { AnyOffer, JobId, Offer, OfferBy } from './offer.js'
import type { UploadOptions } from './upload.js'
import { isWhole, sizeOf, type UploadSource } from './upload-source.js'
import type { WaitOptions } from './wait.js'

/** Smaller files are re-sent after an interruption, which costs no more than resuming. */
const minResumableBytes = 8 * 1024 ** 2

export interface PeaksOptions extends RequestOptions {
  /** Maximum number of entries. Default: all, at most 8,192. */
  length?: number
}

export interface CreateOptions extends RequestOptions {
  /** A repeated call with the same key and job creates no second job. Default: a random one for each call. */
  idempotencyKey?: string
}

/** Methods for single jobs, and for the application's keys, usage and webhook receivers. */
export interface SingleJobs<Offered extends AnyOffer = Offer> {
  /**
   * Uploads a file. If the service supports it, uploads of 8 MiB or more resume after an interruption. The returned
   * address is the input of a job.
   */
  upload(source: UploadSource, options?: UploadOptions): Promise<{ downloadUrl: string }>
  createJob<Id extends Offered['id']>(
    job: { workflow: Id } & NewJobOf<OfferBy<Offered, Id>>,
    options?: CreateOptions,
  ): Promise<{ id: JobId<Id> }>
  getJob<Id extends Offered['id']>(id: string | JobId<Id>, options?: RequestOptions): Promise<Job<OfferBy<Offered, Id>>>
  /** One page of jobs, newest first. */
  listJobs(filters?: JobFilters, options?: RequestOptions): Promise<JobPage<Offered>>
  /** Resolves with the ended job, SUCCEEDED or FAILED. Throws `NOT_FOUND` once the job is deleted. */
  waitForJob<Id extends Offered['id']>(
    id: string | JobId<Id>,
    options?: WaitOptions,
  ): Promise<Job<OfferBy<Offered, Id>>>
  /** Reports every change of the application's jobs, also across lost connections, until the signal fires. */
  followJobs(options: FollowOptions): Promise<never>
  /** A link to the results of jobs, or of a batch, as one ZIP file. It needs no key and expires after a while. */
  archive(of: { jobs: readonly string[] } | { batchName: string }, options?: RequestOptions): Promise<Archive>
  /** Peaks of an audio result, for a player to draw. The first call for a result may take a while. */
  peaks(id: string, output: string, options?: PeaksOptions): Promise<Peaks>
  /** Opens a link of a job's `result`. A broken connection is resumed where it stopped. */
  download(url: string, options?: DownloadOptions): Promise<Download>
  /**
   * Streams a result while its job produces it, each byte as soon as it exists; after the job has succeeded, the
   * finished result. Waits until the job has begun the result. Only the lengths in the file's header differ from the
   * finished file. Throws `NOT_FOUND` once there can be no result.
   */
  growing(id: string, output: string, options?: DownloadOptions): Promise<Download>
  /**
   * Peaks of a growing result as far as it exists, in audiowaveform's binary format. The `length` in the header is that
   * of the whole song, or 0.
   */
  growingPeaks(id: string, output: string, options?: DownloadOptions): Promise<Download>
  /** Cancels a job and returns it; a running job stops a little later. */
  cancelJob<Id extends Offered['id']>(
    id: string | JobId<Id>,
    options?: RequestOptions,
  ): Promise<Job<OfferBy<Offered, Id>>>
  /** Runs a FAILED job again with its original params and inputs. Returns the job, now QUEUED. */
  retryJob<Id extends Offered['id']>(
    id: string | JobId<Id>,
    options?: RequestOptions,
  ): Promise<Job<OfferBy<Offered, Id>>>
  /**
   * Sends an event that a step of the job waits for, with any JSON; only events that the workflow accepts from clients.
   * The first event counts: another is refused with `CONFLICT`.
   */
  sendEvent<Id extends Offered['id']>(
    id: string | JobId<Id>,
    name: string,
    value?: unknown,
    options?: RequestOptions,
  ): Promise<Job<OfferBy<Offered, Id>>>
  /** Deletes a job in any state, with all its files. */
  deleteJob(id: string, options?: RequestOptions): Promise<void>
  /**
   * The links by which people without a key see this job, newest first. This and the next two throw `NOT_FOUND` where
   * the service has no console.
   */
  jobLinks(id: string, options?: RequestOptions): Promise<JobLink[]>
  createJobLink(id: string, link?: NewJobLink, options?: RequestOptions): Promise<JobLink>
  /** The link stops working at once. */
  revokeJobLink(id: string, linkId: string, options?: RequestOptions): Promise<void>
  workflows(options?: RequestOptions): Promise<WorkflowSummary[]>
  /** One workflow, with the schema of its params. */
  workflow(id: string, options?: RequestOptions): Promise<Workflow>
  /** The application that the key belongs to. */
  application(options?: RequestOptions): Promise<{ id: string; name: string }>
  /** The application's working keys. This and the next two throw `NOT_FOUND` where the service does not manage keys. */
  listKeys(options?: RequestOptions): Promise<ApiKey[]>
  createKey(key?: NewKey, options?: RequestOptions): Promise<IssuedKey>
  /** The key stops working at once. */
  revokeKey(id: string, options?: RequestOptions): Promise<void>
  /** Usage of the application. Throws `NOT_FOUND` where the job store keeps no ledger. */
  usage(query?: UsageQuery, options?: RequestOptions): Promise<UsageTotal[]>
  /** The application's webhook receivers that are failing, disabled ones first. */
  failingReceivers(options?: RequestOptions): Promise<WebhookReceiver[]>
  /** Re-enables a paused or disabled receiver. @throws ClientError `NOT_FOUND` if the receiver is not failing */
  enableReceiver(origin: string, options?: RequestOptions): Promise<void>
}

/** @param hasOwnFetch whether the host named a `fetch`, which then sends uploads too */
export function singleJobs(connection: Connection, hasOwnFetch: boolean): SingleJobs {
  const growing = async (address: string, options?: DownloadOptions) =>
    (await import('./download.js')).openGrowing(connection, address, options)

  return {
    async upload(source, transfer = {}) {
      const ticket = await connection.value<UploadTicket>('/upload', transfer)
      if (ticket.resumableUrl !== undefined && isWhole(source) && sizeOf(source) >= minResumableBytes) {
        const { putResumable } = await import('./resumable-upload.js')
        return await putResumable(connection, ticket.resumableUrl, source, { ...transfer, hasOwnFetch })
      }
      const { putFile } = await import('./upload.js')
      await putFile(connection, ticket.uploadUrl, source, { ...transfer, hasOwnFetch })
      return { downloadUrl: ticket.downloadUrl }
    },
    async createJob(job, { idempotencyKey = randomKey(), signal } = {}) {
      const headers = { 'idempotency-key': idempotencyKey }
      const request = { method: 'POST', json: job, headers, signal, isRepeatable: true } as const
      const { id } = await connection.value<{ id: string }>('/job', request)
      if (typeof id !== 'string') throw badAnswer(200, 'it has no id of a job')
      return { id }
    },
    getJob: async (id, { signal } = {}) => connection.value(path(id), { signal }),
    async listJobs(filters = {}, { signal } = {}) {
      const { value: jobs, headers } = await connection.json<Job[]>('/job', { query: listQuery(filters), signal })
      return { jobs, total: Number(headers.get('x-total-count') ?? jobs.length), next: nextCursor(headers.get('link')) }
    },
    // Imported lazily to keep pages small.
    waitForJob: async (id, wait) => (await import('./wait.js')).waitForJob(connection, id, wait),
    followJobs: (follow) => followJobs(connection, follow),
    async archive(of, { signal } = {}) {
      const query = new URLSearchParams('batchName' in of ? { batchName: of.batchName } : {})
      if ('jobs' in of) for (const id of of.jobs) query.append('job', id)
      return await connection.value<Archive>('/archive', { query, signal })
    },
    async peaks(id, output, { length, signal } = {}) {
      const query = new URLSearchParams(length === undefined ? {} : { length: String(length) })
      return await connection.value<Peaks>(`${path(id)}/peaks/${segment(output, 'result')}`, { query, signal })
    },
    async download(url, download) {
      return (await import('./download.js')).openDownload(connection, url, download)
    },
    growing: async (id, output, options) => growing(`${path(id)}/growing/${segment(output, 'result')}`, options),
    growingPeaks: async (id, output, options) =>
      growing(`${path(id)}/growing/${segment(output, 'result')}/peaks`, options),
    cancelJob: async (id, { signal } = {}) =>
      connection.value(`${path(id)}/cancel`, { method: 'POST', isRepeatable: true, signal }),
    // Not repeatable: a repeat would find the job QUEUED and be refused.
    retryJob: async (id, { signal } = {}) => connection.value(`${path(id)}/retry`, { method: 'POST', signal }),
    sendEvent: async (id, name, value, { signal } = {}) =>
      connection.value(`${path(id)}/event/${segment(name, 'event')}`, { method: 'POST', json: { value }, signal }),
    async deleteJob(id, { signal } = {}) {
      await connection.json(path(id), { method: 'DELETE', signal })
    },
    jobLinks: async (id, { signal } = {}) =>
      (await connection.value<{ links: JobLink[] }>(`${path(id)}/link`, { signal })).links,
    createJobLink: async (id, link = {}, { signal } = {}) =>
      connection.value(`${path(id)}/link`, { method: 'POST', json: link, signal }),
    async revokeJobLink(id, linkId, { signal } = {}) {
      const request = { method: 'DELETE', signal, isRepeatable: true } as const
      await connection.send(`${path(id)}/link/${segment(linkId, 'link with the id')}`, request)
    },
    workflows: async ({ signal } = {}) =>
      (await connection.value<{ workflows: WorkflowSummary[] }>('/workflow', { signal })).workflows,
    workflow: async (id, { signal } = {}) => connection.value(`/workflow/${workflowPath(id)}`, { signal }),
    application: async ({ signal } = {}) => connection.value('/application', { signal }),
    listKeys: async ({ signal } = {}) =>
      (await connection.value<{ keys: ApiKey[] }>('/application/key', { signal })).keys,
    createKey: async (key = {}, { signal } = {}) =>
      connection.value('/application/key', { method: 'POST', json: key, signal }),
    async revokeKey(id, { signal } = {}) {
      await connection.json(`/application/key/${segment(id, 'key with the id')}`, { method: 'DELETE', signal })
    },
    async usage({ groupBy, ...days } = {}, { signal } = {}) {
      const query = new URLSearchParams(groupBy?.length ? { groupBy: groupBy.join(',') } : {})
      for (const [name, day] of Object.entries(days)) if (day !== undefined) query.set(name, day)
      return (await connection.value<{ usage: UsageTotal[] }>('/usage', { query, signal })).usage
    },
    failingReceivers: async ({ signal } = {}) =>
      (await connection.value<{ receivers: WebhookReceiver[] }>('/application/webhook-receiver', { signal })).receivers,
    async enableReceiver(origin, { signal } = {}) {
      const path = '/application/webhook-receiver/enable'
      await connection.json(path, { method: 'POST', json: { origin }, isRepeatable: true, signal })
    },
  }
}

/** Workflow ids contain slashes. */
const workflowPath = (id: string) =>
  id
    .split('/')
    .map((part) => segment(part, 'workflow with the part'))
    .join('/')

interface UploadTicket {
  uploadUrl: string
  downloadUrl: string
  /** Endpoint for resumable uploads; absent in services that do not offer them. */
  resumableUrl?: string
}

/** The cursor within the `Link` header, which may hold other links too (RFC 8288). */
function nextCursor(link: string | null): string | undefined {
  const url = /<([^>]*)>\s*;\s*rel="?next"?/.exec(link ?? '')?.[1]
  return url === undefined ? undefined : (new URL(url, 'http://localhost').searchParams.get('after') ?? undefined)
}
