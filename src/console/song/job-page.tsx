import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import { hasEnded, type Job } from '../../client/client.js'
import type { Client } from '../service/page-client.js'
import { Details } from './details.js'
import { ErrorNotice } from '../elements/error-notice.js'
import { JobActions } from './job-actions.js'
import { JobLinks } from './job-links.js'
import { KeepOffline } from './keep-offline.js'
import type { JobCommands } from '../jobs/job-commands.js'
import type { JobStore } from '../service/job-store.js'
import { useChanges } from '../service/live-jobs.js'
import { Results } from './results.js'
import { rhythmWords, type SongRhythm } from '../player/rhythm.js'
import { jobAddress, type Route } from '../route.js'
import { canRepeat } from '../words/song-facts.js'
import { uploadStateWords } from '../uploads/upload-row.js'
import type { Upload } from '../uploads/upload.js'
import type { Uploads } from '../uploads/upload-queue.js'
import { explain, explainFailure, type Explanation, jobStateWords, statusWords, whenWords } from '../words/words.js'

/** Ids of jobs are longer than this; those of uploads are numbers, which are shorter. */
const shortestId = 30

/** Width of the buttons, from the upload to the end. */
const actionsWidth = '12rem'

interface SongPageProps {
  client: Client
  store: JobStore
  commands: JobCommands
  uploads: Uploads
  route: Extract<Route, { name: 'job' }>
}

/** A song from its upload to its stems: playback continues when the upload becomes a job. */
export function SongPage({ route, ...rest }: SongPageProps) {
  const { list, made } = rest.uploads
  const isShown = ({ number }: Upload) => String(number) === route.id
  const [id, sent] = [...made].find(([one, upload]) => one === route.id || isShown(upload)) ?? []
  const upload = sent ?? list.find(isShown)
  const isJob = id !== undefined || route.id.length > shortestId
  const address = id !== undefined && id !== route.id ? jobAddress(id) : isJob || upload ? undefined : '#/'
  useEffect(() => {
    if (address !== undefined) location.replace(address)
  }, [address])
  return (
    <JobPage
      key={upload ? `upload ${upload.number}` : route.id}
      {...rest}
      id={id ?? (isJob ? route.id : undefined)}
      upload={upload}
      tab={route.tab}
    />
  )
}

interface JobPageProps extends Omit<SongPageProps, 'route'> {
  /** Undefined before there is a job. */
  id: string | undefined
  /** Undefined for a song that was not sent in this visit. */
  upload: Upload | undefined
  tab: 'player' | 'details'
}

/** Reads the job again each time the page is opened, so that a reload continues where it was. */
function JobPage({ client, store, commands, uploads, id = '', upload, tab }: JobPageProps) {
  const [failed, setFailed] = useState<Explanation>()
  const [reads, setReads] = useState(0)
  const [rhythm, setRhythm] = useState<SongRhythm>()
  const heading = useRef<HTMLHeadingElement>(null)
  const [opened] = useState(() => store.next())
  const shown = useRef<Job>(undefined)
  useChanges(store, id)
  // Older links may have expired. Those of the page still work, and another object would restart the player.
  if (!shown.current?.result && store.isHeardSince(id, opened)) shown.current = store.get(id) ?? shown.current
  const job = shown.current
  const problem = store.isDeleted(id) ? { text: 'This song was deleted.' } : failed

  useEffect(() => {
    if (id === '') return
    const stop = new AbortController()
    const revision = store.next()
    setFailed(undefined)
    client.getJob(id, { signal: stop.signal }).then(
      (read) => store.read([read], revision),
      (error: unknown) => stop.signal.aborted || setFailed(explain(error)),
    )
    return () => stop.abort()
  }, [client, id, reads, store.connectedAt])
  useEffect(() => {
    document.title = job ? `${titleMark(job)}${job.name ?? 'Song'} – stemwork` : 'stemwork'
  }, [job])
  const isKnown = job !== undefined || upload !== undefined
  useEffect(() => heading.current?.focus(), [isKnown, !problem])

  const again = async () => {
    if (!job) return
    const [next] = await commands.again([job])
    location.hash = next === undefined ? '#/' : jobAddress(next)
  }

  return (
    <article class="stack">
      <p class="screen">
        <a href="#/">← All songs</a>
      </p>
      {job && (
        <header class="line">
          <div class="title">
            <h1 ref={heading} tabIndex={-1} dir="auto">
              {job.name?.trim() || 'Untitled song'}
            </h1>
            <p class="quiet">
              {/* In the order in which these facts arrive, so that nothing moves. */}
              {whenWords(job.createdAt)} · {jobStateWords(job)}
              {job.result && job.expiresAt && ` · kept until ${whenWords(job.expiresAt)}`}
              {rhythm && ` · ${rhythmWords(rhythm)}`}
            </p>
          </div>
          <JobActions
            width={actionsWidth}
            job={job}
            canRepeat={canRepeat(job)}
            commands={{
              ...commands,
              again,
              remove(gone) {
                commands.remove(gone)
                location.hash = '#/'
              },
            }}
          />
        </header>
      )}
      {!job && upload && <Sending heading={heading} upload={upload} uploads={uploads} />}
      {!isKnown && problem && (
        <h1 ref={heading} tabIndex={-1}>
          Song
        </h1>
      )}
      {problem && <ErrorNotice problem={problem} onAgain={() => setReads((now) => now + 1)} />}
      {!isKnown && !problem && <p class="quiet">Loading …</p>}
      {isKnown && (
        <nav class="tabs" aria-label="Views of this song">
          {(['player', 'details'] as const).map((one) => (
            <a
              key={one}
              href={job && jobAddress(id, one)}
              aria-disabled={!job}
              aria-current={tab === one ? 'page' : undefined}
            >
              {one === 'details' ? 'Details' : isHeard(job) ? 'Player' : 'Result'}
            </a>
          ))}
        </nav>
      )}
      {job && tab === 'details' && <Details job={job} />}
      {/* Stays while the details are shown, so that the music continues. */}
      {isKnown && (
        <div class="stack" hidden={tab !== 'player'}>
          {job?.error && (
            <ErrorNotice
              problem={explainFailure(job.error)}
              onAgain={canRepeat(job) ? () => void again() : undefined}
              label="Send again"
            />
          )}
          {(!job || job.result || !hasEnded(job)) && (
            <Results client={client} job={job} upload={upload} commands={commands} onRhythm={setRhythm} />
          )}
          {job?.result && isHeard(job) && <KeepOffline client={client} job={job} />}
          {job?.result && <JobLinks client={client} jobId={job.id} />}
        </div>
      )}
    </article>
  )
}

interface SendingProps {
  heading: RefObject<HTMLHeadingElement | null>
  upload: Upload
  uploads: Uploads
}

/** Header of a song that is not a job yet. */
function Sending({ heading, upload, uploads }: SendingProps) {
  const { number, file, state, problem } = upload
  return (
    <>
      <header class="line">
        <div class="title">
          <h1 ref={heading} tabIndex={-1} dir="auto">
            {file.name}
          </h1>
          <p class="quiet">{uploadStateWords(upload)}</p>
        </div>
        <span class="actions" style={{ minWidth: actionsWidth }}>
          <Button
            class="plain"
            aria-label={`Stop ${file.name}`}
            onClick={() => {
              location.hash = '#/'
              uploads.with((queue) => queue.remove(number))
            }}
          >
            Stop
          </Button>
        </span>
      </header>
      {problem && (
        <ErrorNotice
          problem={problem}
          onAgain={() => uploads.with((queue) => queue.retry(number))}
          label={state === 'refused' ? 'Send anyway' : 'Send again'}
        />
      )}
    </>
  )
}

/** Whether there is audio to listen to; true for a job without results, as it may still have some. */
function isHeard(job: Job | undefined): boolean {
  const files = job?.files
  return !files || Object.values(files).some(({ contentType }) => contentType.startsWith('audio/'))
}

function titleMark(job: Job): string {
  if (job.status === 'STARTED') return `${Math.floor(job.progress * 100)} % · `
  return hasEnded(job) ? '' : `${statusWords[job.status]} · `
}
