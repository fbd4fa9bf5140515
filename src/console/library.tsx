import { useEffect, useRef, useState } from 'preact/hooks'
import { hasEnded, type WorkflowSummary } from '../client/client.js'
import type { Client } from './page-client.js'
import { BulkBar } from './bulk-bar.js'
import type { Deletions } from './deletions.js'
import { DropZone } from './drop-zone.js'
import { ErrorNotice } from './error-notice.js'
import { type Choices, JobChoices, type Refusals } from './job-choices.js'
import type { JobCommands } from './job-commands.js'
import { useJobPages } from './job-pages.js'
import { LibraryFilters } from './library-filters.js'
import { LibraryRow } from './library-row.js'
import type { LiveJobs } from './live-jobs.js'
import { OnDeviceChoice } from './on-device-choice.js'
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
  const { client, live, uploads, deletions, commands, workflows, choices, refusals, onChoices, filters } = props
  const pages = useJobPages(client, live, filters)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const heading = useRef<HTMLHeadingElement>(null)
  const rows = useRef<HTMLUListElement>(null)
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

  const jobs = pages.jobs?.filter(({ id }) => !deletions.hidden.has(id))
  const selected = jobs?.filter(({ id }) => chosen.has(id)) ?? []
  const isFiltered = Object.values(filters).some((value) => value !== undefined)
  const choose = (ids: readonly string[], isChosen: boolean) =>
    setChosen((all) => new Set(isChosen ? [...all, ...ids] : [...all].filter((id) => !ids.includes(id))))

  // The focus was on a row that goes: it moves to the next one, or to the heading.
  const removing: JobCommands = {
    ...commands,
    remove(gone) {
      const ids = gone.map(({ id }) => id)
      const index = jobs?.findIndex(({ id }) => ids.includes(id)) ?? -1
      const next = jobs?.slice(index).find(({ id }) => !ids.includes(id)) ?? jobs?.[index - 1]
      commands.remove(gone)
      choose(ids, false)
      const link = next && rows.current?.querySelector<HTMLElement>(`[data-job="${next.id}"] .name`)
      if (link) link.focus()
      else heading.current?.focus()
    },
  }

  return (
    <>
      <section class="send" ref={sending} aria-labelledby="send-title">
        <h1 id="send-title" tabIndex={-1}>
          {/stems/.test(choices.workflow) ? 'Separate a song' : 'Send a song'}
        </h1>
        <DropZone onFiles={(files) => isCorrected() && uploads.add(files)} />
        <JobChoices client={client} workflows={workflows} choices={choices} refusals={refusals} onChange={onChoices} />
        <OnDeviceChoice />
      </section>
      <section class="jobs" aria-labelledby="jobs-title">
        <div class="line">
          <h2 id="jobs-title" ref={heading} tabIndex={-1}>
            Your songs
          </h2>
          {jobs && pages.total > 0 && (
            <span class="quiet">{pages.total === 1 ? '1 song' : `${pages.total} songs`}</span>
          )}
        </div>
        <LibraryFilters
          filters={filters}
          workflows={workflows}
          onChange={(next) => location.replace(libraryAddress(next))}
        />
        {pages.problem && <ErrorNotice problem={pages.problem} />}
        {jobs && jobs.length > 0 && (
          <BulkBar
            selected={selected}
            all={jobs}
            onChoose={(isChosen) =>
              choose(
                jobs.map(({ id }) => id),
                isChosen,
              )
            }
            commands={removing}
          />
        )}
        {jobs?.length === 0 && uploads.list.length === 0 && !pages.isLoading && (
          <p class="quiet centred">{isFiltered ? 'No songs match.' : 'No songs yet. Drop one above.'}</p>
        )}
        {!jobs && !pages.problem && <p class="quiet centred">Loading …</p>}
        <ul class="rows" ref={rows} aria-label="Songs">
          {/* The newest first, as it is among the jobs. */}
          {uploads.list.toReversed().map((upload) => (
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
        {jobs && pages.hasMore && (
          <p class="centred">
            <button type="button" disabled={pages.isLoading} onClick={() => pages.more()}>
              Show more
            </button>
          </p>
        )}
        {jobs?.some((job) => !hasEnded(job)) && (
          <p class="quiet centred small">
            Songs are processed one after another. You can close this page; the work goes on.
          </p>
        )}
      </section>
    </>
  )
}
