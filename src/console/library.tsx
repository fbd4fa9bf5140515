import { useEffect, useRef, useState } from 'preact/hooks'
import { hasEnded, type Job, type WorkflowSummary } from '../client/client.js'
import type { Client } from './page-client.js'
import { BulkBar } from './bulk-bar.js'
import type { Deletions } from './deletions.js'
import { DropZone } from './drop-zone.js'
import { ErrorNotice } from './error-notice.js'
import { type Choices, JobChoices, type Refusals } from './job-choices.js'
import type { JobCommands } from './job-commands.js'
import { type JobPages, useJobPages } from './job-pages.js'
import { LibraryFilters } from './library-filters.js'
import { LibraryRow } from './library-row.js'
import type { LiveJobs } from './live-jobs.js'
import { libraryAddress, type ListFilters } from './route.js'
import { UploadRow } from './upload-row.js'
import type { Uploads } from './uploads.js'

interface LibraryProps {
  client: Client
  live: LiveJobs
  uploads: Uploads
  deletions: Deletions
  commands: JobCommands
  workflows: readonly WorkflowSummary[]
  choices: Choices
  refusals: Refusals
  onChoices(choices: Choices): void
  filters: ListFilters
}

/** One row for each song, from its upload to its stems. */
export function Library(props: LibraryProps) {
  const { client, workflows, choices, refusals, onChoices, uploads } = props
  const sending = useRef<HTMLElement>(null)
  useEffect(() => {
    document.title = 'Library – stemwork'
  }, [])

  /** Nothing is sent with a setting that is wrong; the person is led to it. */
  const isCorrected = () => {
    const wrong = sending.current?.querySelector<HTMLElement>('[aria-invalid="true"]')
    const options = wrong?.closest('details')
    if (options) options.open = true
    wrong?.focus()
    return !wrong
  }

  return (
    <>
      <section class="send" ref={sending} aria-labelledby="send-title">
        <h1 id="send-title" tabIndex={-1}>
          {/stems/.test(choices.workflow) ? 'Separate a song' : 'Send a song'}
        </h1>
        <DropZone onFiles={(files) => isCorrected() && uploads.add(files)} />
        <JobChoices client={client} workflows={workflows} choices={choices} refusals={refusals} onChange={onChoices} />
      </section>
      <Songs {...props} />
    </>
  )
}

type SongsProps = Pick<LibraryProps, 'client' | 'live' | 'uploads' | 'deletions' | 'commands' | 'workflows' | 'filters'>

function Songs({ client, live, uploads, deletions, commands, workflows, filters }: SongsProps) {
  const pages = useJobPages(client, live, filters)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const jobs = pages.jobs?.filter(({ id }) => !deletions.hidden.has(id))
  const choose = (ids: readonly string[], isChosen: boolean) =>
    setChosen((all) => new Set(isChosen ? [...all, ...ids] : [...all].filter((id) => !ids.includes(id))))
  const { heading, rows, removing } = useFocusedRemoval(commands, jobs, (ids) => choose(ids, false))

  return (
    <section class="jobs" aria-labelledby="jobs-title">
      <div class="line">
        <h2 id="jobs-title" ref={heading} tabIndex={-1}>
          Your songs
        </h2>
        {!filters.search && <Total pages={pages} />}
      </div>
      <LibraryFilters
        filters={filters}
        workflows={workflows}
        onChange={(next) => location.replace(libraryAddress(next))}
      />
      {pages.problem && <ErrorNotice problem={pages.problem} />}
      {jobs && jobs.length > 0 && (
        <BulkBar
          selected={jobs.filter(({ id }) => chosen.has(id))}
          all={jobs}
          onChoose={(isChosen) => {
            const ids = jobs.map(({ id }) => id)
            choose(ids, isChosen)
          }}
          commands={removing}
        />
      )}
      {!jobs?.length && <Nothing pages={pages} uploads={uploads} filters={filters} />}
      <ul class="rows" ref={rows} aria-label="Songs">
        {uploads.list.map((upload) => (
          <UploadRow key={`upload ${upload.number}`} upload={upload} uploads={uploads} />
        ))}
        {jobs?.map((job) => (
          <LibraryRow
            key={job.id}
            client={client}
            job={job}
            isChosen={chosen.has(job.id)}
            onChoose={(isChosen) => choose([job.id], isChosen)}
            commands={removing}
          />
        ))}
      </ul>
      {jobs && <ListEnd jobs={jobs} pages={pages} isSearch={Boolean(filters.search)} />}
    </section>
  )
}

/** The focus was on a row that goes: it moves to the next one, or to the heading. */
function useFocusedRemoval(commands: JobCommands, jobs: readonly Job[] = [], onRemove: (ids: string[]) => void) {
  const heading = useRef<HTMLHeadingElement>(null)
  const rows = useRef<HTMLUListElement>(null)
  const removing: JobCommands = {
    ...commands,
    remove(gone) {
      const ids = gone.map(({ id }) => id)
      const next = neighbourOf(ids, jobs)
      commands.remove(gone)
      onRemove(ids)
      const link = next && rows.current?.querySelector<HTMLElement>(`[data-job="${next.id}"] .name`)
      if (link) link.focus()
      else heading.current?.focus()
    },
  }
  return { heading, rows, removing }
}

/** The next job that stays, else the one before. */
function neighbourOf(ids: readonly string[], jobs: readonly Job[]): Job | undefined {
  const index = jobs.findIndex(({ id }) => ids.includes(id))
  return jobs.slice(index).find(({ id }) => !ids.includes(id)) ?? jobs[index - 1]
}

function Total({ pages: { jobs, total } }: { pages: JobPages }) {
  if (!jobs || total === 0) return null
  return <span class="quiet">{total === 1 ? '1 song' : `${total} songs`}</span>
}

function Nothing({ pages, uploads, filters }: Pick<SongsProps, 'uploads' | 'filters'> & { pages: JobPages }) {
  if (!pages.jobs) return pages.problem ? null : <p class="quiet centred">Loading …</p>
  if (pages.isLoading || uploads.list.length > 0) return null
  const isFiltered = Object.values(filters).some((value) => value !== undefined)
  return <p class="quiet centred">{isFiltered ? 'No songs match.' : 'No songs yet. Drop one above.'}</p>
}

function ListEnd({ jobs, pages, isSearch }: { jobs: readonly Job[]; pages: JobPages; isSearch: boolean }) {
  return (
    <>
      {pages.hasMore && (
        <p class="centred">
          <button type="button" disabled={pages.isLoading} onClick={() => pages.more()}>
            {isSearch ? 'Search older songs' : 'Show more'}
          </button>
        </p>
      )}
      {jobs.some((job) => !hasEnded(job)) && (
        <p class="quiet centred small">
          Songs are processed one after another. You can close this page; the work goes on.
        </p>
      )}
    </>
  )
}
