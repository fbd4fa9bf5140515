import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import type { JobPage, JobRow, Overview } from '../../http/operator/answers.js'
import { SelectFilter, StatusFilter } from '../elements/filter-controls.js'
import { jobStateWords } from '../words/first-words.js'
import { durationWords } from '../words/job-words.js'
import { jobAddress, jobsAddress } from './address.js'
import { BulkLevers } from './bulk-levers.js'
import { type JobFilters, service } from './service.js'
import { timeOf } from './times.js'

interface JobsPageProps {
  overview: Overview
  filters: JobFilters
  onError(error: unknown): void
}

/** Jobs of all applications. */
export function JobsPage({ overview, filters, onError }: JobsPageProps) {
  const [page, setPage] = useState<JobPage>()
  const { status, workflow, app, text, error } = filters
  const latest = useRef(0)

  const load = useCallback(
    async (after?: string) => {
      const own = ++latest.current
      try {
        const found = await service.jobs({ status, workflow, app, text, error, after })
        // Drops the answer if a later request was sent.
        if (own === latest.current)
          setPage((before) =>
            after === undefined || !before ? found : { ...found, jobs: [...before.jobs, ...found.jobs] },
          )
      } catch (error) {
        onError(error)
      }
    },
    [status, workflow, app, text, error, onError],
  )
  useEffect(() => {
    setPage(undefined)
    void load()
  }, [load])

  const set = (change: JobFilters) => {
    location.hash = jobsAddress({ ...filters, ...change })
  }
  const names = new Map(overview.applications.map(({ id, name }) => [id, name]))
  return (
    <>
      <h1>Jobs</h1>
      <Filters overview={overview} filters={filters} onChange={set} />
      {[status, workflow, app, text, error].some((filter) => filter !== undefined && filter !== '') && (
        <BulkLevers key={jobsAddress(filters)} filters={filters} onDone={() => void load()} onError={onError} />
      )}
      {page && page.looked !== null && page.next !== null && (
        <p class="quiet small">The errors of {page.looked.toLocaleString()} failed jobs were looked at so far.</p>
      )}
      {page?.jobs.length === 0 && <p class="quiet centred">No such job{page.next === null ? '.' : ' so far.'}</p>}
      {!page && <p class="quiet centred">Loading …</p>}
      {page && page.jobs.length > 0 && (
        <ul class="rows found" aria-label="Jobs">
          {page.jobs.map((job) => (
            <Row key={job.id} job={job} app={names.get(job.app) ?? job.app} now={overview.at} />
          ))}
        </ul>
      )}
      {page && page.next !== null && <Button onClick={() => void load(page.next ?? undefined)}>Show more</Button>}
    </>
  )
}

interface TextFilterProps {
  label: string
  text: string | undefined
  onChange(text: string): void
}

function TextFilter({ label, text: given = '', onChange }: TextFilterProps) {
  // Local state until it is searched for: the page is rendered again with each overview.
  const [text, setText] = useState(given)
  // Before anything can be typed: an effect after the first rendering would overwrite what was typed.
  useLayoutEffect(() => setText(given), [given])
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}

function Filters({
  overview,
  filters,
  onChange,
}: Pick<JobsPageProps, 'overview' | 'filters'> & { onChange(change: JobFilters): void }) {
  return (
    <form class="flow filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <TextFilter label="Id, name or batch" text={filters.text} onChange={(text) => onChange({ text })} />
      <TextFilter label="Error" text={filters.error} onChange={(error) => onChange({ error })} />
      <StatusFilter chosen={filters.status} onChange={(status) => onChange({ status })} />
      <SelectFilter
        label="Workflow"
        all="All workflows"
        choices={new Map(overview.queues.map(({ workflow, name }) => [workflow, name ?? workflow]))}
        chosen={filters.workflow}
        onChange={(workflow) => onChange({ workflow })}
      />
      <SelectFilter
        label="Application"
        all="All applications"
        choices={overview.applications.map(({ id, name }) => [id, name])}
        chosen={filters.app}
        onChange={(app) => onChange({ app })}
      />
    </form>
  )
}

function Row({ job, app, now }: { job: JobRow; app: string; now: number }) {
  const { id, name, workflow, status, error, createdAt, attempts, progress } = job
  return (
    <li>
      <div class="row">
        <a class="name" href={jobAddress(id)}>
          {name ?? id}
        </a>
        <span class="quiet">
          {app} · {workflow.replace(/^service\//, '')}
        </span>
      </div>
      <div class="row">
        <span class={`status ${status.toLowerCase()}`}>
          {jobStateWords(job)}
          {status === 'STARTED' && ` ${Math.floor(progress * 100)} %`}
        </span>
        <span class="quiet">{error?.reason ?? error?.code ?? (attempts > 1 ? `${attempts} attempts` : '')}</span>
      </div>
      <div class="row times">
        <span class="figure">{timeOf(createdAt)}</span>
        <span class="quiet figure">{timeWord(job, now)}</span>
      </div>
    </li>
  )
}

function timeWord({ createdAt, startedAt, completedAt }: JobRow, now: number): string {
  if (completedAt !== null) return startedAt === null ? 'never ran' : `took ${durationWords(completedAt - startedAt)}`
  return startedAt === null ? `waits ${durationWords(now - createdAt)}` : `for ${durationWords(now - startedAt)}`
}
