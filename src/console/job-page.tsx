import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { hasEnded, type Job } from '../client/client.js'
import type { Client } from './page-client.js'
import { Details } from './details.js'
import { ErrorNotice } from './error-notice.js'
import { JobActions } from './job-actions.js'
import type { JobCommands } from './job-commands.js'
import type { LiveJobs } from './live-jobs.js'
import { Results } from './results.js'
import { jobAddress } from './route.js'
import { Work } from './work.js'
import { explain, explainFailure, type Explanation, jobStateWords, statusWords, whenWords } from './words.js'

interface JobPageProps {
  client: Client
  live: LiveJobs
  commands: JobCommands
  id: string
  tab: 'player' | 'details'
}

/** One job from its start to its stems. */
export function JobPage({ client, live, commands, id, tab }: JobPageProps) {
  const { job, problem, retry } = useJob(client, live, id)
  const heading = useRef<HTMLHeadingElement>(null)
  const isLoaded = job !== undefined
  useEffect(() => {
    document.title = job ? `${titleMark(job)}${job.name ?? 'Song'} – stemwork` : 'stemwork'
  }, [job])
  useEffect(() => heading.current?.focus(), [isLoaded, problem === undefined])

  return (
    <article class="job">
      <p class="back">
        <a href="#/">← All songs</a>
      </p>
      {job && <Heading job={job} heading={heading} commands={commands} />}
      {!job && problem && (
        <h1 ref={heading} tabIndex={-1}>
          Song
        </h1>
      )}
      {problem && (
        <ErrorNotice problem={problem}>
          <button type="button" onClick={retry}>
            Try again
          </button>
        </ErrorNotice>
      )}
      {!job && !problem && <p class="quiet">Loading …</p>}
      {job && <Views client={client} job={job} commands={commands} tab={tab} />}
    </article>
  )
}

/** It asks the service anew each time it is opened, so a reload goes on where it was. */
function useJob(client: Client, live: LiveJobs, id: string) {
  const [job, setJob] = useState<Job>()
  const [problem, setProblem] = useState<Explanation>()
  const [reads, setReads] = useState(0)
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
  return { job, problem, retry: () => setReads((now) => now + 1) }
}

async function sendAgain(job: Job, commands: JobCommands): Promise<void> {
  const [next] = await commands.again([job])
  location.hash = next === undefined ? '#/' : jobAddress(next)
}

interface HeadingProps {
  job: Job
  heading: RefObject<HTMLHeadingElement | null>
  commands: JobCommands
}

function Heading({ job, heading, commands }: HeadingProps) {
  const name = job.name ?? 'Untitled song'
  return (
    <header class="line">
      <div class="title">
        <h1 ref={heading} tabIndex={-1} dir="auto">
          {name}
        </h1>
        <p class="quiet">
          {jobStateWords(job)} · {whenWords(job.createdAt)}
          {job.result && job.expiresAt && ` · kept until ${whenWords(job.expiresAt)}`}
        </p>
      </div>
      <JobActions
        job={job}
        name={name}
        onAgain={hasEnded(job) ? () => void sendAgain(job, commands) : undefined}
        onDelete={() => {
          commands.remove([job])
          location.hash = '#/'
        }}
        commands={commands}
      />
    </header>
  )
}

function Views({ client, job, commands, tab }: Pick<JobPageProps, 'client' | 'commands' | 'tab'> & { job: Job }) {
  return (
    <>
      <nav class="tabs" aria-label="Views of this song">
        {(['player', 'details'] as const).map((one) => (
          <a key={one} href={jobAddress(job.id, one)} {...(tab === one ? { 'aria-current': 'page' as const } : {})}>
            {one === 'details' ? 'Details' : isHeard(job) ? 'Player' : 'Result'}
          </a>
        ))}
      </nav>
      {tab === 'details' && <Details job={job} />}
      {/* It stays while the details are shown, so that the music goes on. */}
      <div class="job" hidden={tab !== 'player'}>
        {!hasEnded(job) && <Work client={client} job={job} />}
        {job.error && (
          <ErrorNotice problem={explainFailure(job.error)}>
            <button type="button" onClick={() => void sendAgain(job, commands)}>
              Send again
            </button>
          </ErrorNotice>
        )}
        {(job.result || job.status === 'STARTED') && <Results client={client} job={job} commands={commands} />}
      </div>
    </>
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
