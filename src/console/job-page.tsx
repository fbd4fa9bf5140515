import { useEffect, useRef, useState } from 'preact/hooks'
import { hasEnded, type Job } from '../client/client.js'
import type { Client } from './page-client.js'
import { Details } from './details.js'
import { ErrorNotice } from './error-notice.js'
import { JobActions } from './job-actions.js'
import { JobLinks } from './job-links.js'
import type { JobCommands } from './job-commands.js'
import type { LiveJobs } from './live-jobs.js'
import { Results } from './results.js'
import { rhythmWords, type SongRhythm } from './rhythm.js'
import { jobAddress } from './route.js'
import { canRepeat } from './song-facts.js'
import { explain, explainFailure, type Explanation, jobStateWords, statusWords, whenWords } from './words.js'

interface JobPageProps {
  client: Client
  live: LiveJobs
  commands: JobCommands
  id: string
  tab: 'player' | 'details'
}

/**
 * One job from its start to its stems. It asks the service anew each time it is opened, so a reload goes on where it
 * was.
 */
export function JobPage({ client, live, commands, id, tab }: JobPageProps) {
  const [job, setJob] = useState<Job>()
  const [problem, setProblem] = useState<Explanation>()
  const [reads, setReads] = useState(0)
  const [rhythm, setRhythm] = useState<SongRhythm>()
  const heading = useRef<HTMLHeadingElement>(null)
  /** What the stream has told since the page asked: the answer may be older. */
  const heard = useRef<Job>(undefined)

  useEffect(() => {
    const stop = new AbortController()
    heard.current = undefined
    setProblem(undefined)
    client
      .getJob(id, { signal: stop.signal })
      // The links of a job that is shown already go on working; another object would start the player anew.
      .then((read) => {
        setJob((known) => (known?.result ? known : (heard.current ?? read)))
        live.read([read])
      })
      .catch((error: unknown) => stop.signal.aborted || setProblem(explain(error)))
    return () => stop.abort()
  }, [client, id, reads, live.connections])
  useEffect(
    () =>
      live.listen({
        onJob(changed) {
          if (changed.id !== id) return
          heard.current = changed
          setJob((known) => (known?.result ? known : changed))
        },
        onDeleted: (gone) => gone === id && setProblem({ text: 'This song was deleted.' }),
      }),
    [live, id],
  )
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
    <article class="job">
      <p class="back">
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
        <div class="job" hidden={tab !== 'player'}>
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
