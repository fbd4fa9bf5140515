import { useEffect, useState } from 'preact/hooks'
import type { Job, JobProgress } from '../../client/client.js'
import type { SongClient } from '../service/page-client.js'
import { useSecondsUntil } from '../words/time-left.js'
import { endWords, positionWords, stageWords, startWords, timeLeftWords, whenWords } from '../words/words.js'

/** The progress of a job that has not ended. */
export function Work({ client, job }: { client: SongClient; job: Job }) {
  return (
    <section class="card" aria-label="Progress">
      {job.status === 'QUEUED' ? <Waiting key={job.id} client={client} job={job} /> : <Running job={job} />}
    </section>
  )
}

function Running({ job }: { job: Job }) {
  const seconds = useSecondsUntil(job.estimate?.endsAt)
  return (
    <>
      <p class="line">
        <strong role="status">{stageWords(job.stage)}</strong>
        <span class="figure">{Math.floor(job.progress * 100)} %</span>
      </p>
      <progress aria-label="Progress" value={job.progress} />
      <p class="quiet">{timeLeftWords(seconds)}</p>
    </>
  )
}

/** Progress, in one line, of a job whose stems are already shown. */
export function Rest({ client, job }: { client: SongClient; job: Job }) {
  return job.status === 'QUEUED' ? <RestOfWait client={client} job={job} /> : <RestOfRun job={job} />
}

function RestOfWait({ client, job }: { client: SongClient; job: Job }) {
  const { queuePosition, estimate, waiting } = useNewsOf(client, job)
  const start = useSecondsUntil(estimate?.startsAt)
  return (
    <p class="rest-of-work">
      <span role="status">{waiting?.reason === 'paused' ? 'Paused' : 'Waiting'}</span>
      <progress aria-label="Progress" />
      <span class="figure">{typeof queuePosition === 'number' && positionWords(queuePosition)}</span>
      <span class="quiet">{reasonWords(waiting, job) ?? startWords(start)}</span>
    </p>
  )
}

function RestOfRun({ job }: { job: Job }) {
  const left = timeLeftWords(useSecondsUntil(job.estimate?.endsAt))
  return (
    <p class="rest-of-work">
      <span role="status">{stageWords(job.stage)}</span>
      <progress aria-label="Progress" value={job.progress} />
      <span class="figure">{Math.floor(job.progress * 100)} %</span>
      <span class="quiet">{left}</span>
    </p>
  )
}

function Waiting({ client, job }: { client: SongClient; job: Job }) {
  const { queuePosition, estimate, waiting } = useNewsOf(client, job)
  const [start, end] = [useSecondsUntil(estimate?.startsAt), useSecondsUntil(estimate?.endsAt)]
  return (
    <>
      <p class="line">
        <strong role="status">{waiting?.reason === 'paused' ? 'Paused' : 'Waiting'}</strong>
        {typeof queuePosition === 'number' && <span class="figure">{positionWords(queuePosition)}</span>}
      </p>
      <progress aria-label="Progress" />
      <p class="quiet">
        {reasonWords(waiting, job) ?? `${startWords(start)} ${endWords(end)}`} You can close this page; the work goes
        on.
      </p>
    </>
  )
}

/** Why the job has not started, other than the jobs before it. */
function reasonWords(waiting: Job['waiting'], { notBefore, retryAt, attempt = 0, attempts }: Job): string | undefined {
  // In the person's time zone, which the service does not know.
  if (waiting?.reason === 'scheduled' && notBefore) return `It starts after ${whenWords(notBefore)}.`
  if (waiting?.reason === 'retrying' && retryAt)
    return `Attempt ${attempt} of ${attempts} failed. The next one is at ${whenWords(retryAt)}.`
  return waiting?.message
}

/** The position of a waiting job changes while the job itself does not: only the job's own event stream reports it. */
function useNewsOf(client: SongClient, job: Job): Pick<JobProgress, 'queuePosition' | 'estimate' | 'waiting'> {
  const { id } = job
  const [news, setNews] = useState<JobProgress>(job)
  useEffect(() => {
    const stop = new AbortController()
    client
      .waitForJob(id, { signal: stop.signal, onProgress: (seen) => setNews((known) => ({ ...known, ...seen })) })
      // The status chip shows that the connection is lost, and the page that the job is gone.
      .catch(() => undefined)
    return () => stop.abort()
  }, [client, id])
  return news
}
