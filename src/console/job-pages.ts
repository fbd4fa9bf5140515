import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import type { Job } from '../client/client.js'
import type { Client } from './page-client.js'
import type { LiveJobs } from './live-jobs.js'
import type { ListFilters } from './route.js'
import { explain, type Explanation } from './words.js'

const pageSize = 50
/** Jobs that one search looks at before it asks whether to go on. */
const searchedJobs = 1000
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
  total: number
  next: string | undefined
  isLoaded: boolean
}

const nothing: State = { jobs: new Map(), total: 0, next: undefined, isLoaded: false }

type Action =
  | { kind: 'reset' }
  | { kind: 'page'; jobs: readonly Job[]; total: number; next: string | undefined; isFirst: boolean }
  | { kind: 'changed'; job: Job }
  | { kind: 'created'; job: Job }
  | { kind: 'gone'; id: string }

/** The jobs of a list, page by page, and alive: what the stream of changes tells is in it at once. */
export function useJobPages(client: Client, live: LiveJobs, filters: ListFilters): JobPages {
  const [state, dispatch] = useReducer(reduce, nothing)
  const [problem, setProblem] = useState<Explanation>()
  const [isLoading, setLoading] = useState(true)
  const { status, days, workflow, batch, search = '' } = filters
  const serverKey = JSON.stringify([status, days, workflow, batch])
  const stop = useRef(new AbortController())
  /** What the stream has told, and what the page has made, since the page asked: the answer may be older. */
  const heard = useRef(new Map<string, Job | 'deleted'>())
  const made = useRef(new Map<string, Job>())
  const newest = useRef(filters)
  newest.current = filters

  const change = (id: string, job: Job | 'deleted') =>
    dispatch(job === 'deleted' || !passes(job, newest.current) ? { kind: 'gone', id } : { kind: 'changed', job })
  const create = (job: Job) => {
    if (passes(job, newest.current)) dispatch({ kind: 'created', job })
  }

  const load = async (cursor: string | undefined, wanted: number) => {
    const { signal } = stop.current
    heard.current.clear()
    made.current.clear()
    setLoading(true)
    try {
      let next = cursor
      let looked = 0
      let found = 0
      do {
        const page = await client.listJobs(
          {
            size: search ? 100 : pageSize,
            status,
            workflow,
            batchName: batch || undefined,
            createdAfter: days === undefined ? undefined : new Date(Date.now() - days * dayMs),
            cursor: next,
          },
          { signal },
        )
        signal.throwIfAborted()
        dispatch({ kind: 'page', ...page, isFirst: next === undefined })
        for (const job of made.current.values()) create(job)
        for (const [id, job] of heard.current) change(id, job)
        live.read(page.jobs.filter(({ id }) => !heard.current.has(id)))
        next = page.next
        looked += page.jobs.length
        found += page.jobs.filter((job) => isFound(job, search)).length
        setProblem(undefined)
      } while (search && next !== undefined && found < wanted && looked < searchedJobs)
    } catch (error) {
      if (!signal.aborted) setProblem(explain(error))
    } finally {
      if (!signal.aborted) setLoading(false)
    }
  }

  useEffect(() => dispatch({ kind: 'reset' }), [client, serverKey])
  useEffect(() => {
    stop.current = new AbortController()
    void load(undefined, pageSize)
    return () => stop.current.abort()
  }, [client, serverKey, search, live.turn])

  useEffect(
    () =>
      live.listen({
        onJob(job) {
          heard.current.set(job.id, job)
          change(job.id, job)
        },
        onCreated(job) {
          if (heard.current.has(job.id)) return
          made.current.set(job.id, job)
          create(job)
        },
        onDeleted(id) {
          heard.current.set(id, 'deleted')
          change(id, 'deleted')
        },
      }),
    [live],
  )

  const sorted = [...state.jobs.values()].filter((job) => passes(job, filters) && isFound(job, search))
  sorted.sort((a, b) => (a.createdAt === b.createdAt ? (a.id < b.id ? 1 : -1) : a.createdAt < b.createdAt ? 1 : -1))
  return {
    jobs: state.isLoaded ? sorted : undefined,
    total: state.total,
    hasMore: state.next !== undefined,
    isLoading,
    problem,
    more: () => void load(state.next, pageSize),
  }
}

function reduce(state: State, action: Action): State {
  switch (action.kind) {
    case 'reset':
      return nothing
    case 'page': {
      const jobs = new Map(state.jobs)
      // What is newer than the oldest of a first page and not on it is gone.
      const oldest = action.isFirst ? action.jobs.at(-1)?.createdAt : undefined
      if (action.isFirst)
        for (const [id, { createdAt }] of jobs) if (oldest === undefined || createdAt >= oldest) jobs.delete(id)
      for (const job of action.jobs) jobs.set(job.id, job)
      const keepsCursor = action.isFirst && jobs.size > action.jobs.length
      return { jobs, total: action.total, next: keepsCursor ? state.next : action.next, isLoaded: true }
    }
    case 'changed': {
      const jobs = new Map(state.jobs)
      const isNew = !jobs.has(action.job.id)
      jobs.set(action.job.id, action.job)
      return { ...state, jobs, total: state.total + (isNew ? 1 : 0) }
    }
    case 'created':
      // What the stream has told is newer.
      return state.jobs.has(action.job.id) ? state : reduce(state, { kind: 'changed', job: action.job })
    case 'gone': {
      if (!state.jobs.has(action.id)) return state
      const jobs = new Map(state.jobs)
      jobs.delete(action.id)
      return { ...state, jobs, total: state.total - 1 }
    }
    default:
      return action satisfies never
  }
}

function passes(job: Job, { status, days, workflow, batch }: ListFilters): boolean {
  return (
    (status === undefined || job.status === status) &&
    (workflow === undefined || job.workflow.id === workflow) &&
    (!batch || job.batchName === batch) &&
    (days === undefined || Date.parse(job.createdAt) > Date.now() - days * dayMs)
  )
}

function isFound({ name, batchName }: Job, search: string): boolean {
  const text = `${name ?? ''} ${batchName ?? ''}`.toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}
