import { useEffect, useState } from 'preact/hooks'
import type { Job, JobProgress } from '../../client/client.js'
import type { SongClient } from '../service/page-client.js'
import { useSecondsUntil } from '../words/time-left.js'
import { endWords, positionWords, stageWords, startWords, timeLeftWords, whenWords } from '../words/words.js'

interface WorkProps {
  client: SongClient
  job: Job
  /** Whether its stems are already shown: then one line suffices. */
  isLine?: boolean
}

/** The progress of a job that has not ended. */
export function Work(props: WorkProps) {
  const { job, isLine } = props
  const progress = job.status === 'QUEUED' ? <Waiting key={job.id} {...props} /> : <Running {...props} />
  if (isLine) return progress
  return (
    <section class="card" aria-label="Progress">
      {progress}
    </section>
  )
}

function Running({ job: { stage, progress, estimate }, isLine }: WorkProps) {
  const time = timeLeftWords(useSecondsUntil(estimate?.endsAt))
  const figure = `${Math.floor(progress * 100)} %`
  return <Shown state={stageWords(stage)} share={progress} {...{ figure, time, isLine }} />
}

function Waiting({ client, job, isLine }: WorkProps) {
  const { queuePosition, estimate, waiting } = useNewsOf(client, job)
  const [start, end] = [useSecondsUntil(estimate?.startsAt), useSecondsUntil(estimate?.endsAt)]
  const figure = typeof queuePosition === 'number' ? positionWords(queuePosition) : undefined
  const reason = reasonWords(waiting, job)
  const time = isLine
    ? (reason ?? startWords(start))
    : `${reason ?? `${startWords(start)} ${endWords(end)}`} You can close this page; the work goes on.`
  return <Shown state={waiting?.reason === 'paused' ? 'Paused' : 'Waiting'} {...{ figure, time, isLine }} />
}

interface ShownProps extends Pick<WorkProps, 'isLine'> {
  state: string
  figure: string | undefined
  /** 0..1; absent while the job waits. */
  share?: number
  time: string
}

function Shown({ state, figure, share, time, isLine }: ShownProps) {
  const bar = <progress aria-label="Progress" value={share} />
  return isLine ? (
    <p class="rest-of-work">
      <span role="status">{state}</span>
      {bar}
      <span class="figure">{figure}</span>
      <span class="quiet">{time}</span>
    </p>
  ) : (
    <>
      <p class="line">
        <strong role="status">{state}</strong>
        {figure !== undefined && <span class="figure">{figure}</span>}
      </p>
      {bar}
      <p class="quiet">{time}</p>
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
