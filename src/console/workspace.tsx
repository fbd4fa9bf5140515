import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Button } from './elements/button.js'
import { hasEnded, type Job, type WorkflowSummary } from '../client/client.js'
import type { Client } from './service/page-client.js'
import { Brand } from './elements/brand.js'
import { useDeletions } from './jobs/deletions.js'
import { type Choices, type Refusals, stemsWorkflowId } from './options/choices.js'
import { keepChoices, keptChoices, keepsSongs, type Session } from './session/session.js'
import { useJobCommands } from './jobs/job-commands.js'
import { Library } from './library/library.js'
import { shownLists } from './jobs/job-list.js'
import type { JobStore } from './service/job-store.js'
import { useLiveJobs } from './service/live-jobs.js'
import { useMessages } from './elements/messages.js'
import { type Route, useRoute } from './route.js'
import { whenUsed } from './when-used.js'
import { useUploads } from './library/uploads.js'
import { jobStateWords } from './words/first-words.js'

interface WorkspaceProps {
  client: Client
  session: Session
  onLeave(): void
  /** Called when the service has revoked the key. */
  onRefused(): void
}

const KeysPage = whenUsed(({ KeysPage }) => KeysPage)
const SongPage = whenUsed(({ SongPage }) => SongPage)

const retryMs = 5000

/** The pages for a signed-in person. Uploads continue, and choices stay, from page to page. */
export function Workspace({ client, session: { application, session }, onLeave, onRefused }: WorkspaceProps) {
  const route = useRoute()
  const { jobs, state } = useLiveJobs(client, onRefused)
  const lists = useMemo(() => shownLists(client, jobs), [client, jobs])
  const { announce } = useMessages()
  const noteSent = useAnnouncedEnds(jobs)
  const [choices, setChoices] = useState<Choices>(() => keptChoices() ?? { workflow: stemsWorkflowId, settings: {} })
  const [refusals, setRefusals] = useState<{ workflow: string; of: Refusals }>()
  const uploads = useUploads(client, choices, {
    onCreated(id, { name }) {
      if (!noteSent(id)) announce(`${name} was sent.`)
      // For the list, in case the stream of changes is disconnected.
      const revision = jobs.next()
      client.getJob(id).then(
        (job) => jobs.read([job], revision),
        () => undefined,
      )
    },
    onRefused: ({ name }, { text }) => announce(`${name} was not sent. ${text}`),
    onParamsRefused: (workflow, of) => setRefusals({ workflow, of }),
  })
  const deletions = useDeletions(client)
  const commands = useJobCommands(client, uploads, deletions)
  const workflows = useWorkflows(client, choices, setChoices)
  useOfflineSongs(client, jobs)
  useFocusOnReturn(route)

  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault()
          document.querySelector<HTMLElement>('main')?.focus()
        }}
      >
        Skip to the content
      </a>
      <header class="top">
        <Brand />
        <nav aria-label="Pages">
          <a href="#/" aria-current={route.name === 'library' ? 'page' : undefined}>
            Library
          </a>
          <a href="#/keys" aria-current={route.name === 'keys' ? 'page' : undefined}>
            API keys
          </a>
          <a href="docs">API docs</a>
        </nav>
        <p class="who screen">
          <span class={`chip ${state}`} role="status">
            {state.replace(/^./, (letter) => letter.toUpperCase())}
          </span>
          {/* The default name says nothing. */}
          {application !== 'default' && <span class="quiet application">Application: {application}</span>}
          {session && (
            <Button class="plain" onClick={onLeave}>
              Sign out
            </Button>
          )}
        </p>
      </header>
      <main id="main" tabIndex={-1}>
        {route.name === 'library' && (
          <Library
            client={client}
            store={jobs}
            lists={lists}
            uploads={uploads}
            deletions={deletions}
            commands={commands}
            workflows={workflows}
            choices={choices}
            refusals={refusals?.workflow === choices.workflow ? refusals.of : {}}
            onChoices={(next) => {
              setChoices(next)
              keepChoices(next)
              // A combination that was refused may be valid now.
              if (next.workflow === choices.workflow) setRefusals(undefined)
            }}
            filters={route.filters}
          />
        )}
        {route.name === 'job' && (
          <SongPage client={client} store={jobs} commands={commands} uploads={uploads} route={route} />
        )}
        {route.name === 'keys' && <KeysPage client={client} session={session} />}
      </main>
    </>
  )
}

function useWorkflows(
  client: Client,
  choices: Choices,
  onChoices: (choices: Choices) => void,
): readonly WorkflowSummary[] {
  const [workflows, setWorkflows] = useState<readonly WorkflowSummary[]>([])
  const [attempts, setAttempts] = useState(0)
  useEffect(() => {
    const stop = new AbortController()
    let timer: ReturnType<typeof setTimeout>
    client.workflows({ signal: stop.signal }).then(
      (offered) => {
        const all = offered.filter(({ aliasOf }) => aliasOf === undefined)
        setWorkflows(all)
        if (!all.some(({ id }) => id === choices.workflow) && all[0]) onChoices({ ...choices, workflow: all[0].id })
      },
      // Without workflows there is nothing to choose until the next attempt.
      () => {
        if (!stop.signal.aborted) timer = setTimeout(() => setAttempts((now) => now + 1), retryMs)
      },
    )
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [client, attempts])
  return workflows
}

/**
 * Announces when a song is done, whatever page is shown.
 *
 * @returns a function for the id of each job that was sent from here: the job's end may be its first news, even before
 * the answer to the request. True if it was.
 */
function useAnnouncedEnds(jobs: JobStore): (jobId: string) => boolean {
  const { announce, show } = useMessages()
  const sent = useRef(new Set<string>())
  const announceEnd = (job: Job) => {
    const text = `${job.name ?? 'A song'}: ${jobStateWords(job).toLowerCase()}.`
    if (location.hash.includes(job.id)) announce(text)
    else show({ text })
  }
  useEffect(
    () =>
      jobs.onChange(({ job, before }) => {
        const isNews = job && (before === undefined ? sent.current.has(job.id) : before !== job.status)
        if (isNews && hasEnded(job)) announceEnd(job)
      }),
    [jobs],
  )
  return (jobId) => {
    sent.current.add(jobId)
    const job = jobs.get(jobId)
    if (!job || !hasEnded(job)) return false
    announceEnd(job)
    return true
  }
}

/** Removes songs from this device that the service no longer has. */
function useOfflineSongs(client: Client, jobs: JobStore): void {
  useEffect(() => {
    if (!keepsSongs()) return
    // Without an answer, everything stays as it was.
    void import('./later.js').then(({ checkOffline }) => checkOffline(client)).catch(() => undefined)
  }, [client])
  useEffect(
    () =>
      jobs.onChange(({ id, job }) => {
        if (!job && keepsSongs()) void import('./later.js').then(({ forgetOffline }) => forgetOffline(id))
      }),
    [jobs],
  )
}

/**
 * On return to the list, moves the focus to the song that was open, or else to the heading, instead of losing it with
 * the page that is gone.
 */
function useFocusOnReturn(route: Route): void {
  const last = useRef(route)
  // Before `keepFocus` looks for another place.
  useLayoutEffect(() => {
    const before = last.current
    last.current = route
    if (before.name === route.name || route.name !== 'library') return
    const row = before.name === 'job' && document.querySelector<HTMLElement>(`[data-job="${before.id}"] .name`)
    if (row) row.focus({ preventScroll: true })
    else document.querySelector<HTMLElement>('main h1')?.focus()
  }, [route])
}
