import { useEffect, useRef, useState } from 'preact/hooks'
import type { Job, JobPage } from '../client/client.js'
import type { Client } from './page-client.js'
import type { LiveJobs } from './live-jobs.js'
import type { ListFilters } from './route.js'
import { explain, type Explanation } from './words.js'

const pageSize = 50
/** So that the answer to each pause in writing stays small. */
const foundSize = 15
/** A search waits for so long after the last letter, or new job. */
const pauseMs = 200
const dayMs = 24 * 60 * 60 * 1000

export interface JobPages {
  /** Undefined until the first answer. */
  jobs: readonly Job[] | undefined
  /** Jobs that pass the filters of the service, on all pages. */
  total: number
  hasMore: boolean
  isLoading: boolean
  problem: Explanation | undefined
  more(): void
}

interface State {
  jobs: Map<string, Job>
  /** What was searched for. */
  search: string
  /** Of the pages read so far; undefined before the first answer. */
  end: PagesEnd | undefined
}

interface PagesEnd {
  /** The cursor of the next page. */
  next: string | undefined
  /** Undefined if no page follows. */
  last: Job | undefined
  /** Jobs that only later pages have. */
  further: number
}

const nothing: State = { jobs: new Map(), search: '', end: undefined }

/** The jobs of a list, page by page, and alive: what the stream of changes tells is in it at once. */
export function useJobPages(client: Client, live: LiveJobs, filters: ListFilters): JobPages {
  const [state, setState] = useState(nothing)
  const [problem, setProblem] = useState<Explanation>()
  const [isLoading, setLoading] = useState(true)
  /** The latest new job, which a search may find. */
  const [added, setAdded] = useState<string>()
  const { status, days, workflow, batch, search = '' } = filters
  const serverKey = JSON.stringify([status, days, workflow, batch])
  const stop = useRef(new AbortController())
  /** What the stream has told, and what the page has made, since the page asked: the answer may be older. */
  const heard = useRef(new Map<string, Job | 'deleted'>())
  const made = useRef(new Map<string, Job>())
  const newest = useRef(filters)
  newest.current = filters
  const shown = useRef(0)
  shown.current = state.jobs.size
  const searched = useRef('')
  searched.current = state.search

  const change = (id: string, job: Job | 'deleted') =>
    setState((now) => (job === 'deleted' || !passes(job, newest.current) ? without(now, id) : withJob(now, job)))
  // What the stream has told of it is newer.
  const create = (job: Job) =>
    setState((now) => (now.jobs.has(job.id) || !passes(job, newest.current) ? now : withJob(now, job)))

  /** Reads the next page, or from the first all that are shown. */
  const load = async (cursor?: string) => {
    const { signal } = stop.current
    const isFirst = cursor === undefined
    const isSame = searched.current === search
    heard.current.clear()
    made.current.clear()
    setLoading(true)
    try {
      let next = cursor
      const read: Job[] = []
      do {
        const page = await client.listJobs(
          {
            size: search ? foundSize : pageSize,
            status,
            workflow,
            batchName: batch || undefined,
            search: search || undefined,
            createdAfter: days === undefined ? undefined : new Date(Date.now() - days * dayMs),
            cursor: next,
          },
          { signal },
        )
        signal.throwIfAborted()
        read.push(...page.jobs)
        const pages = { ...page, jobs: [...read] }
        setState((now) => withPages(now.search === search ? now : { ...nothing, search }, pages, isFirst))
        for (const job of made.current.values()) create(job)
        for (const [id, job] of heard.current) change(id, job)
        live.read(page.jobs.filter(({ id }) => !heard.current.has(id)))
        next = page.next
        setProblem(undefined)
      } while (next !== undefined && isFirst && isSame && read.length < shown.current)
    } catch (error) {
      if (!signal.aborted) setProblem(explain(error))
    } finally {
      if (!signal.aborted) setLoading(false)
    }
  }

  useEffect(() => setState(nothing), [client, serverKey])
  useEffect(() => {
    stop.current = new AbortController()
    setLoading(true)
    const timer = setTimeout(() => void load(), search ? pauseMs : 0)
    return () => {
      clearTimeout(timer)
      stop.current.abort()
    }
  }, [client, serverKey, search, live.connections, added])

  useEffect(
    () =>
      live.listen({
        onJob(job) {
          heard.current.set(job.id, job)
          change(job.id, job)
          if (newest.current.search && job.status === 'QUEUED') setAdded(job.id)
        },
        onCreated(job) {
          if (heard.current.has(job.id)) return
          made.current.set(job.id, job)
          create(job)
          if (newest.current.search) setAdded(job.id)
        },
        onDeleted(id) {
          heard.current.set(id, 'deleted')
          change(id, 'deleted')
        },
      }),
    [live],
  )

  const sorted = [...state.jobs.values()].filter((job) => passes(job, filters))
  sorted.sort((a, b) => (isFurtherDown(a, b) ? 1 : -1))
  return {
    jobs: state.end && sorted,
    total: state.jobs.size + (state.end?.further ?? 0),
    hasMore: state.end?.next !== undefined,
    isLoading,
    problem,
    more: () => void load(state.end?.next),
  }
}

function withPages(state: State, { jobs: read, total, next }: JobPage, isFirst: boolean): State {
  const jobs = new Map(state.jobs)
  const last = next === undefined ? undefined : read.at(-1)
  // What belongs on the first pages and is not there is gone.
  if (isFirst) for (const job of state.jobs.values()) if (!isFurtherDown(job, last)) jobs.delete(job.id)
  for (const job of read) jobs.set(job.id, job)
  return { ...state, jobs, end: { next, last, further: next === undefined ? 0 : total - jobs.size } }
}

function withJob(state: State, job: Job): State {
  // A job of a later page comes with it, and the service alone knows what a search finds.
  if (!state.jobs.has(job.id) && (state.search || !state.end || isFurtherDown(job, state.end.last))) return state
  return { ...state, jobs: new Map(state.jobs).set(job.id, job) }
}

function without(state: State, id: string): State {
  if (!state.jobs.has(id)) return state
  const jobs = new Map(state.jobs)
  jobs.delete(id)
  return { ...state, jobs }
}

/** The list begins with the newest. */
function isFurtherDown(a: Job, b: Job | undefined): boolean {
  return b !== undefined && (a.createdAt === b.createdAt ? a.id < b.id : a.createdAt < b.createdAt)
}

function passes(job: Job, { status, days, workflow, batch }: ListFilters): boolean {
  return (
    (status === undefined || job.status === status) &&
    (workflow === undefined || job.workflow.id === workflow) &&
    (!batch || job.batchName === batch) &&
    (days === undefined || Date.parse(job.createdAt) > Date.now() - days * dayMs)
  )
}
