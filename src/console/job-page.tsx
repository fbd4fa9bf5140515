import { useEffect, useRef, useState } from 'preact/hooks'
import { hasEnded, type Job } from '../client/client.js'
import type { Client } from './page-client.js'
import { Details } from './details.js'
import { ErrorNotice } from './error-notice.js'
import { JobActions } from './job-actions.js'
import { JobLinks } from './job-links.js'
import { KeepOffline } from './keep-offline.js'
import type { JobCommands } from './job-commands.js'
import type { JobStore } from './job-store.js'
import { useChanges } from './live-jobs.js'
import { Results } from './results.js'
import { rhythmWords, type SongRhythm } from './rhythm.js'
import { jobAddress } from './route.js'
import { canRepeat } from './song-facts.js'
import { explain, explainFailure, type Explanation, jobStateWords, statusWords, whenWords } from './words.js'

interface JobPageProps {
  client: Client
  store: JobStore
  commands: JobCommands
  id: string
  tab: 'player' | 'details'
}

/**
 * One job from its start to its stems. It asks the service anew each time it is opened, so a reload goes on where it
 * was.
 */
export function JobPage({ client, store, commands, id, tab }: JobPageProps) {
  const [failed, setFailed] = useState<Explanation>()
  const [reads, setReads] = useState(0)
  const [rhythm, setRhythm] = useState<SongRhythm>()
  const heading = useRef<HTMLHeadingElement>(null)
  const [opened] = useState(() => store.next())
  const shown = useRef<Job>(undefined)
  useChanges(store, id)
  // Links that are older may have ended. Those of the page go on working; another object would start the player anew.
  if (!shown.current?.result && store.isHeardSince(id, opened)) shown.current = store.get(id) ?? shown.current
  const job = shown.current
  const problem = store.isDeleted(id) ? { text: 'This song was deleted.' } : failed

  useEffect(() => {
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
  useEffect(() => heading.current?.focus(), [!job, !problem])

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
              {job.name ?? 'Untitled song'}
            </h1>
            <p class="quiet">
              {jobStateWords(job)} · {whenWords(job.createdAt)}
              {rhythm && ` · ${rhythmWords(rhythm)}`}
              {job.result && job.expiresAt && ` · kept until ${whenWords(job.expiresAt)}`}
            </p>
          </div>
          <JobActions
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
      {!job && problem && (
        <h1 ref={heading} tabIndex={-1}>
          Song
        </h1>
      )}
      {problem && (
        <ErrorNotice problem={problem}>
          <button type="button" onClick={() => setReads((now) => now + 1)}>
            Try again
          </button>
        </ErrorNotice>
      )}
      {!job && !problem && <p class="quiet">Loading …</p>}
      {job && (
        <nav class="tabs" aria-label="Views of this song">
          {(['player', 'details'] as const).map((one) => (
            <a key={one} href={jobAddress(id, one)} aria-current={tab === one ? 'page' : undefined}>
              {one === 'details' ? 'Details' : isHeard(job) ? 'Player' : 'Result'}
            </a>
          ))}
        </nav>
      )}
      {job && tab === 'details' && <Details job={job} />}
      {/* It stays while the details are shown, so that the music goes on. */}
      {job && (
        <div class="stack" hidden={tab !== 'player'}>
          {job.error && (
            <ErrorNotice problem={explainFailure(job.error)}>
              {canRepeat(job) && (
                <button type="button" onClick={() => void again()}>
                  Send again
                </button>
              )}
            </ErrorNotice>
          )}
          {(job.result || !hasEnded(job)) && (
            <Results client={client} job={job} commands={commands} onRhythm={setRhythm} />
          )}
          {job.result && isHeard(job) && <KeepOffline client={client} job={job} />}
          {job.result && <JobLinks client={client} jobId={job.id} />}
        </div>
      )}
    </article>
  )
}

/** Whether there is something to listen to. Of a job without results, nobody knows yet. */
function isHeard({ files }: Job): boolean {
  return !files || Object.values(files).some(({ contentType }) => contentType.startsWith('audio/'))
}

function titleMark(job: Job): string {
  if (job.status === 'STARTED') return `${Math.floor(job.progress * 100)} % · `
  return hasEnded(job) ? '' : `${statusWords[job.status]} · `
}
