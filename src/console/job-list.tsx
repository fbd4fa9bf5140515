import { useEffect, useState } from 'preact/hooks'
import {
  type Client,
  hasEnded,
  type Job,
  type JobFilters,
  type JobStatus,
  type WorkflowSummary,
} from '../client/client.js'
import { JobActions } from './job-actions.js'
import { jobAddress } from './route.js'
import { ErrorNotice } from './error-notice.js'
import { explain, type Explanation, statusWords, whenWords } from './words.js'

const pageSize = 20
const activeRefreshMs = 3000
const quietRefreshMs = 15_000
const dayMs = 24 * 60 * 60 * 1000

const statuses: readonly (JobStatus | undefined)[] = [undefined, 'QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED']
const times = [
  { name: 'Any time', days: undefined },
  { name: 'Last 24 hours', days: 1 },
  { name: 'Last 7 days', days: 7 },
  { name: 'Last 30 days', days: 30 },
]

interface Listing {
  jobs: Job[]
  total: number
  next: string | undefined
}

export function JobList({ client, workflows }: { client: Client; workflows: readonly WorkflowSummary[] }) {
  const [status, setStatus] = useState<JobStatus>()
  const [days, setDays] = useState<number>()
  const [workflow, setWorkflow] = useState('')
  const [batchName, setBatchName] = useState('')
  const [listing, setListing] = useState<Listing>()
  const [problem, setProblem] = useState<Explanation>()
  const [turn, setTurn] = useState(0)

  const filters = (): JobFilters => ({
    size: pageSize,
    status,
    workflow: workflow || undefined,
    batchName: batchName || undefined,
    createdAfter: days === undefined ? undefined : new Date(Date.now() - days * dayMs),
  })
  const hasActive = listing?.jobs.some((job) => !hasEnded(job)) ?? false

  useEffect(() => {
    const stop = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const refresh = async () => {
      clearTimeout(timer)
      try {
        const page = await client.listJobs(filters(), { signal: stop.signal })
        setProblem(undefined)
        setListing((known) => (turn > 0 && known ? merged(page, known) : page))
      } catch (error) {
        if (!stop.signal.aborted) setProblem(explain(error))
      }
      if (!stop.signal.aborted)
        timer = setTimeout(() => document.hidden || void refresh(), hasActive ? activeRefreshMs : quietRefreshMs)
    }
    const onVisible = () => document.hidden || void refresh()
    document.addEventListener('visibilitychange', onVisible)
    void refresh()
    return () => {
      stop.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisible)
    }
  }, [client, status, days, workflow, batchName, hasActive, turn])

  const more = async () => {
    try {
      const page = await client.listJobs({ ...filters(), cursor: listing?.next })
      setListing((known) => ({ jobs: [...(known?.jobs ?? []), ...page.jobs], total: page.total, next: page.next }))
    } catch (error) {
      setProblem(explain(error))
    }
  }
  const isFiltered = status !== undefined || days !== undefined || workflow !== '' || batchName !== ''

  return (
    <section class="jobs" aria-labelledby="jobs-title">
      <div class="line">
        <h2 id="jobs-title">Your songs</h2>
        {listing && listing.total > 0 && (
          <span class="quiet">{listing.total === 1 ? '1 job' : `${listing.total} jobs`}</span>
        )}
      </div>
      <div class="filters">
        <fieldset class="segments">
          <legend class="hidden">Status</legend>
          {statuses.map((one) => (
            <label key={one ?? 'all'}>
              <input type="radio" name="status" checked={status === one} onChange={() => setStatus(one)} />
              <span>{one ? statusWords[one] : 'All'}</span>
            </label>
          ))}
        </fieldset>
        <select
          aria-label="Created"
          value={String(days ?? '')}
          onChange={({ currentTarget: { value } }) => setDays(value ? Number(value) : undefined)}
        >
          {times.map((time) => (
            <option key={time.name} value={String(time.days ?? '')}>
              {time.name}
            </option>
          ))}
        </select>
        {workflows.length > 1 && (
          <select
            aria-label="Kind of job"
            value={workflow}
            onChange={(event) => setWorkflow(event.currentTarget.value)}
          >
            <option value="">All kinds</option>
            {workflows.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        )}
        <input
          type="search"
          aria-label="Batch"
          placeholder="Batch"
          maxLength={255}
          onChange={({ currentTarget: { value } }) => setBatchName(value.trim())}
        />
      </div>
      {problem && <ErrorNotice problem={problem} />}
      {listing?.jobs.length === 0 && (
        <p class="quiet centred">
          {isFiltered ? 'No job passes these filters.' : 'Nothing here yet. Your first song will be.'}
        </p>
      )}
      <ul class="rows">
        {listing?.jobs.map((job) => (
          <li key={job.id}>
            <a class="row" href={jobAddress(job.id)}>
              <span class="name">{job.name ?? 'Song without a name'}</span>
              <span class="quiet">
                {whenWords(job.createdAt)}
                {job.batchName && ` · ${job.batchName}`}
              </span>
            </a>
            {hasEnded(job) ? (
              <span class={`status ${job.status.toLowerCase()}`}>
                {job.error?.code === 'CANCELED' ? 'Stopped' : statusWords[job.status]}
              </span>
            ) : (
              <span class={`status ${job.status.toLowerCase()}`}>
                {statusWords[job.status]}
                {job.status === 'STARTED' && ` ${Math.floor(job.progress * 100)} %`}
              </span>
            )}
            <JobActions
              client={client}
              job={job}
              onChange={() => setTurn((now) => now + 1)}
              onDeleted={() => setListing((known) => known && without(known, job.id))}
            />
          </li>
        ))}
      </ul>
      {listing?.next && (
        <p class="centred">
          <button type="button" onClick={() => void more()}>
            Show more
          </button>
        </p>
      )}
    </section>
  )
}

/** The newest page over what further pages brought before. */
function merged(page: Listing, known: Listing): Listing {
  const rest = known.jobs.slice(page.jobs.length).filter(({ id }) => !page.jobs.some((job) => job.id === id))
  return rest.length === 0 ? page : { jobs: [...page.jobs, ...rest], total: page.total, next: known.next }
}

function without({ jobs, total, next }: Listing, id: string): Listing {
  return { jobs: jobs.filter((job) => job.id !== id), total: total - 1, next }
}
