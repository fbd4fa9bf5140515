import type { Job, JobPage, JobStatus } from '../../client/client.js'
import type { JobStore } from '../service/job-store.js'
import { ListPosition } from '../elements/long-list.js'
import type { Client } from '../service/page-client.js'
import type { ListFilters } from '../route.js'
import { explained } from './explained.js'
import type { Explanation } from '../words/first-words.js'

/** Number of jobs on the first page, and on others. */
const [pageSize, furtherSize] = [50, 100]
/** Small, because a search answers after every pause in typing. */
const foundSize = 15
const dayMs = 24 * 60 * 60 * 1000

/** The list's entry of a job; the store has the rest of jobs that were used recently. */
export interface Place {
  id: string
  createdAt: string
  name: string | null
  status: JobStatus
  /** Revision of the request, or of the change, that added the entry. */
  revision: number
}

/**
 * The jobs that pass the filters, newest first, down to where they were read. The list is live: changes from the stream
 * appear at once. Its pages are read when they come into view.
 */
export class JobList {
  places: Place[] = []
  isRead = false
  isLoading = false
  problem: Explanation | undefined
  readonly position = new ListPosition()
  readonly filters: ListFilters
  readonly #client: Client
  readonly #jobs: JobStore
  readonly #changed: () => void
  readonly #byId = new Map<string, Place>()
  /** Number of jobs beyond the last place. */
  #further = 0
  #hasMore = true
  #readAt = 0
  /** Revision at which a search may have missed a job; answers to earlier requests lack it. */
  #outdatedAt = 0
  #failedAt = 0
  /** Changes since the last request, which its answer may lack. */
  #heard = new Map<string, Job | undefined>()
  readonly #stop = new AbortController()
  readonly #unsubscribe: () => void

  constructor(client: Client, jobs: JobStore, filters: ListFilters, changed: () => void) {
    this.#client = client
    this.#jobs = jobs
    this.filters = filters
    this.#changed = changed
    this.#unsubscribe = jobs.onChange(({ id, job, before }) => {
      this.#heard.set(id, job)
      this.#put(id, job)
      // Only the service knows what a search finds.
      if (filters.search && job && before === undefined && !this.#byId.has(id)) this.#outdatedAt = jobs.next()
    })
  }

  /** Number of jobs that pass the filters, including those that were not read. */
  get total(): number {
    return this.places.length + this.#further
  }

  close(): void {
    this.#stop.abort()
    this.#unsubscribe()
  }

  /** Place to read from, if some of these places, or the first, were not read since the connection was opened. */
  oldOf(from: number, to: number): number | undefined {
    const { connectedAt } = this.#jobs
    if (this.isLoading || (this.problem && this.#failedAt > connectedAt)) return undefined
    if (!this.isRead || this.#readAt < Math.max(connectedAt, this.#outdatedAt)) return 0
    for (let index = from; index < Math.min(to, this.total); index++) {
      const place = this.places[index]
      if (!place) return this.places.length
      if (place.revision < connectedAt || !this.#jobs.get(place.id)) return index
    }
    return undefined
  }

  /** Reads a page from this place on. */
  async read(from: number): Promise<void> {
    const above = this.places[from - 1]
    const { signal } = this.#stop
    const revision = this.#jobs.next()
    this.isLoading = true
    this.#heard = new Map()
    try {
      const page = await this.#client.listJobs(pageQuery(this.filters, above), { signal })
      this.#take(page, above, revision)
      if (!above) this.#readAt = revision
      this.isRead = true
      this.problem = undefined
    } catch (error) {
      this.problem = await explained(error)
      this.#failedAt = this.#jobs.next()
    }
    this.isLoading = false
    if (!signal.aborted) this.#changed()
  }

  retry(): void {
    this.#failedAt = 0
    this.#changed()
  }

  /** Merges a page of the jobs below `above`. */
  #take({ jobs, next, total }: JobPage, above: Place | undefined, revision: number): void {
    const last = next === undefined ? undefined : jobs.at(-1)
    const end = this.places.at(-1)
    // Drops the places within the page that it does not contain.
    const kept = this.places.filter((place) => {
      const isBeside = (above && !isFurtherDown(place, above)) || (last && isFurtherDown(place, last))
      if (!isBeside) this.#byId.delete(place.id)
      return isBeside
    })
    const found = jobs.flatMap((job) => {
      const now = this.#heard.has(job.id) ? this.#heard.get(job.id) : job
      return now && passes(now, this.filters) ? [placeOf(now, revision)] : []
    })
    for (const place of found) this.#byId.set(place.id, place)
    this.places = [...kept, ...found].sort((a, b) => (isFurtherDown(a, b) ? 1 : -1))
    if (!last) this.#hasMore = false
    else if (!end || isFurtherDown(last, end)) this.#hasMore = true
    const heard = this.#heard
    this.isRead = true
    for (const [id, job] of heard) this.#put(id, job)
    this.#further = this.#hasMore ? Math.max(1, total - this.places.length) : 0
    this.#jobs.read(jobs, revision)
  }

  /** Adds, updates or removes a job. @param job undefined if it was deleted */
  #put(id: string, job: Job | undefined): void {
    const place = this.#byId.get(id)
    const end = this.places.at(-1)
    const isHere = job !== undefined && passes(job, this.filters)
    if (place && isHere) Object.assign(place, { name: job.name, status: job.status })
    else if (place) {
      this.#byId.delete(id)
      this.places.splice(this.places.indexOf(place), 1)
    } else if (isHere && this.isRead && !this.filters.search) {
      // A job of a later page arrives with that page.
      if (this.#hasMore && (!end || isFurtherDown(job, end))) return
      const made = placeOf(job, this.#jobs.next())
      const at = this.places.findIndex((other) => isFurtherDown(other, made))
      this.places.splice(at < 0 ? this.places.length : at, 0, made)
      this.#byId.set(id, made)
    }
  }
}

function pageQuery({ status, days, workflow, batch, search }: ListFilters, above: Place | undefined) {
  return {
    size: search ? foundSize : above ? furtherSize : pageSize,
    status,
    workflow,
    batchName: batch || undefined,
    search: search || undefined,
    createdAfter: days === undefined ? undefined : new Date(Date.now() - days * dayMs),
    cursor: above && `${above.id}@${Date.parse(above.createdAt)}`,
  }
}

function placeOf({ id, createdAt, name, status }: Job, revision: number): Place {
  return { id, createdAt, name, status, revision }
}

/** The list begins with the newest. */
function isFurtherDown(a: Pick<Job, 'id' | 'createdAt'>, b: Pick<Job, 'id' | 'createdAt'>): boolean {
  return a.createdAt === b.createdAt ? a.id < b.id : a.createdAt < b.createdAt
}

function passes(job: Job, { status, days, workflow, batch }: ListFilters): boolean {
  return (
    (status === undefined || job.status === status) &&
    (workflow === undefined || job.workflow.id === workflow) &&
    (!batch || job.batchName === batch) &&
    (days === undefined || Date.parse(job.createdAt) > Date.now() - days * dayMs)
  )
}

export type ShownLists = ReturnType<typeof shownLists>

/** The list that is shown. It is kept while another page is shown. */
export function shownLists(client: Client, jobs: JobStore) {
  let newest: JobList | undefined
  let shown: JobList | undefined
  const lists = {
    /** Set by the page to render. */
    changed: (): void => undefined,

    /** Shows the results of a search until the next search is answered. */
    of(filters: ListFilters): { shown: JobList; newest: JobList } {
      const now =
        newest && same(newest.filters, filters) ? newest : new JobList(client, jobs, filters, () => lists.changed())
      if (newest && newest !== now && newest !== shown) newest.close()
      const waiting =
        shown?.isRead && !now.isRead && !now.problem && same({ ...shown.filters, search: filters.search }, filters)
          ? shown
          : undefined
      if (shown && shown !== now && !waiting) shown.close()
      newest = now
      shown = waiting ?? now
      return { shown, newest }
    },
  }
  return lists
}

function same(a: ListFilters, b: ListFilters): boolean {
  return (['status', 'days', 'workflow', 'batch', 'search'] as const).every((name) => a[name] === b[name])
}
