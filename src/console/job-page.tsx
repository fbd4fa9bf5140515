import { useEffect, useRef, useState } from 'preact/hooks'
import { type Client, hasEnded, type Job, type JobProgress } from '../client/client.js'
import { JobActions } from './job-actions.js'
import { Results } from './results.js'
import { ErrorNotice } from './error-notice.js'
import { TimeLeft } from './time-left.js'
import {
  explain,
  explainFailure,
  type Explanation,
  stageWords,
  statusWords,
  timeLeftWords,
  whenWords,
} from './words.js'

/** One job from its start to its stems. It asks the service anew each time it is opened, so a reload goes on where it was. */
export function JobPage({ client, id }: { client: Client; id: string }) {
  const [job, setJob] = useState<Job>()
  const [problem, setProblem] = useState<Explanation>()
  const [turn, setTurn] = useState(0)

  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    const follow = async () => {
      const first = await client.getJob(id, { signal })
      setJob(first)
      if (hasEnded(first)) return
      const onProgress = (progress: JobProgress) => setJob((known) => known && { ...known, ...progress })
      setJob(await client.waitForJob(id, { signal, onProgress }))
    }
    setProblem(undefined)
    follow().catch((error: unknown) => signal.aborted || setProblem(explain(error)))
    return () => stop.abort()
  }, [client, id, turn])

  useEffect(() => {
    document.title = job ? `${titleMark(job)}${job.name ?? 'Song'} – stemwork` : 'stemwork'
  }, [job])

  return (
    <article class="job">
      <p>
        <a href="#/">← All songs</a>
      </p>
      {job && (
        <header class="line">
          <div>
            <h1>{job.name ?? 'Song without a name'}</h1>
            <p class="quiet">
              {whenWords(job.createdAt)}
              {job.result && job.expiresAt && ` · kept until ${whenWords(job.expiresAt)}`}
            </p>
          </div>
          <JobActions client={client} job={job} onChange={() => undefined} onDeleted={() => (location.hash = '#/')} />
        </header>
      )}
      {problem && (
        <ErrorNotice problem={problem}>
          <button type="button" onClick={() => setTurn((now) => now + 1)}>
            Try again
          </button>
        </ErrorNotice>
      )}
      {!job && !problem && <p class="quiet">One moment …</p>}
      {job && !hasEnded(job) && <Work job={job} />}
      {job?.error && <ErrorNotice problem={explainFailure(job.error)} />}
      {job?.result && <Results client={client} job={job} result={job.result} />}
    </article>
  )
}

function Work({ job }: { job: Job }) {
  const timeLeft = useRef(new TimeLeft())
  const [, setNow] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  const isQueued = job.status === 'QUEUED'
  if (!isQueued) timeLeft.current.observe(job.progress, performance.now())
  const percent = Math.floor(job.progress * 100)
  return (
    <section class="card work">
      <p class="line">
        <strong role="status">{isQueued ? 'Waiting for its turn' : stageWords(job.stage)}</strong>
        {!isQueued && <span class="figure">{percent} %</span>}
      </p>
      <progress aria-label="Progress" {...(isQueued ? {} : { value: job.progress })} />
      <p class="quiet">
        {isQueued
          ? 'It begins by itself. You can close this page meanwhile.'
          : timeLeftWords(timeLeft.current.seconds(performance.now()))}
      </p>
    </section>
  )
}

function titleMark(job: Job): string {
  if (job.status === 'STARTED') return `${Math.floor(job.progress * 100)} % · `
  return hasEnded(job) ? '' : `${statusWords[job.status]} · `
}
