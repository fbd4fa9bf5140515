import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import { hasEnded, type WorkflowSummary } from '../../client/client.js'
import type { Client } from '../service/page-client.js'
import { BulkBar } from './bulk-bar.js'
import type { Deletions } from '../jobs/deletions.js'
import { DropZone } from '../elements/drop-zone.js'
import { ErrorNotice } from '../elements/error-notice.js'
import type { Choices, Refusals } from '../options/choices.js'
import { JobChoices } from './job-choices.js'
import type { JobCommands } from '../jobs/job-commands.js'
import type { JobList, ShownLists } from '../jobs/job-list.js'
import type { JobStore } from '../service/job-store.js'
import { LibraryFilters } from './library-filters.js'
import { LibraryRow } from './library-row.js'
import { useChanges } from '../service/live-jobs.js'
import { LongList } from '../elements/long-list.js'
import { OnDeviceChoice } from '../uploads/on-device-choice.js'
import { libraryAddress, type ListFilters } from '../route.js'
import type { Uploads } from '../uploads/upload-queue.js'
import { whenUsed } from '../when-used.js'
import { isCorrected } from '../options/workflow-choice.js'

const UploadList = whenUsed(({ UploadList }) => UploadList, <></>)

/** How long a search waits after the last letter, or a new job. */
const pauseMs = 200

interface LibraryProps {
  client: Client
  store: JobStore
  lists: ShownLists
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
  const { client, store, lists, uploads, deletions, commands, workflows, choices, refusals, onChoices, filters } = props
  const { list, read } = useList(store, lists, filters)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const heading = useRef<HTMLHeadingElement>(null)
  const rows = useRef<HTMLDivElement>(null)
  const sending = useRef<HTMLElement>(null)
  useEffect(() => {
    document.title = 'Library – stemwork'
  }, [])

  const jobs = list.isRead ? list.places.filter(({ id }) => !deletions.hidden.has(id)) : undefined
  const shown = jobs?.map(({ id }) => id) ?? []
  const count = list.total + shown.length - list.places.length
  const selected = jobs?.filter(({ id }) => chosen.has(id)) ?? []
  const separates = /stems/.test(choices.workflow)
  const isFiltered = Object.values(filters).some((value) => value !== undefined)
  const choose = (ids: readonly string[], isChosen: boolean) =>
    setChosen((all) => new Set(isChosen ? [...all, ...ids] : [...all].filter((id) => !ids.includes(id))))

  // Moves the focus from a row that is being removed to the next one, or to the heading.
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
      <section class="stack send screen" ref={sending} aria-labelledby="send-title">
        <h1 id="send-title" tabIndex={-1}>
          {separates ? 'Separate a song' : 'Send a song'}
        </h1>
        <DropZone onFiles={(files) => isCorrected(sending.current) && uploads.with((queue) => queue.add(files))} />
        <JobChoices client={client} workflows={workflows} choices={choices} refusals={refusals} onChange={onChoices} />
        {separates && <OnDeviceChoice />}
      </section>
      <section class="stack" aria-labelledby="jobs-title">
        <div class="line">
          <h2 id="jobs-title" ref={heading} tabIndex={-1}>
            Your songs
          </h2>
          {count > 0 && <span class="quiet">{count === 1 ? '1 song' : `${count} songs`}</span>}
        </div>
        <LibraryFilters
          filters={filters}
          workflows={workflows}
          onChange={(next) => location.replace(libraryAddress(next))}
        />
        {list.problem && <ErrorNotice problem={list.problem} onAgain={() => list.retry()} />}
        {shown.length > 0 && (
          <BulkBar
            selected={selected}
            read={shown.length}
            count={count}
            onChoose={(isChosen) => choose(shown, isChosen)}
            commands={removing}
          />
        )}
        {jobs && count === 0 && uploads.list.length === 0 && !list.isLoading && (
          <p class="quiet centred">{isFiltered ? 'No songs match.' : 'No songs yet. Drop one above.'}</p>
        )}
        {!jobs && !list.problem && <p class="quiet centred">Loading …</p>}
        <div ref={rows}>
          {uploads.list.length > 0 && <UploadList {...{ client, workflows, uploads }} />}
          {shown.length > 0 && (
            <LongList label="Songs" ids={shown} count={count} position={list.position} onView={read}>
              {(index, place) => {
                const { id, name } = jobs?.[index] ?? { id: undefined, name: 'Loading …' }
                const job = id === undefined ? undefined : store.get(id)
                if (id === undefined || !job)
                  return (
                    <li key={id ?? index} {...place}>
                      <div class="row">
                        <span class="name quiet">{name}</span>
                      </div>
                    </li>
                  )
                return (
                  <LibraryRow
                    key={id}
                    client={client}
                    job={job}
                    place={place}
                    isChosen={chosen.has(id)}
                    onChoose={(isChosen) => choose([id], isChosen)}
                    commands={removing}
                  />
                )
              }}
            </LongList>
          )}
        </div>
        {jobs?.some((job) => !hasEnded(job)) && (
          <p class="quiet centred small">
            Songs are processed one after another. You can close this page; the work goes on.
          </p>
        )}
      </section>
    </>
  )
}

/** The list for these filters, read as far as it is in view. */
function useList(store: JobStore, lists: ShownLists, filters: ListFilters) {
  const [, render] = useReducer((times: number) => times + 1, 0)
  useChanges(store)
  const { shown, newest } = lists.of(filters)
  lists.changed = () => render(undefined)
  const read = (list: JobList, from: number, to: number) => {
    const first = list.oldOf(from, to)
    if (first !== undefined) void list.read(first)
  }
  // For a list that is empty, or not read yet.
  useEffect(() => {
    const timer = setTimeout(() => read(newest, 0, 0), filters.search ? pauseMs : 0)
    return () => clearTimeout(timer)
  })
  return { list: shown, read: (from: number, to: number) => shown.isRead && read(shown, from, to) }
}
