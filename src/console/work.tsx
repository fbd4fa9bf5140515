import { useEffect, useRef, useState } from 'preact/hooks'
import type { Client, Job } from '../client/client.js'
import { TimeLeft, useTimeLeft } from './time-left.js'
import { placeWords, stageWords, startWords, timeLeftWords, whenWords } from './words.js'

/** How far a job is that has not ended. */
export function Work({ client, job }: { client: Client; job: Job }) {
  return (
    <section class="card work" aria-label="Progress">
      {job.status === 'QUEUED' ? <Waiting client={client} job={job} /> : <Running job={job} />}
    </section>
  )
}

function Running({ job }: { job: Job }) {
  const seconds = useTimeLeft(job)
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

function Waiting({ client, job }: { client: Client; job: Job }) {
  const { place, seconds } = useQueue(client, job)
  const isDelayed = Date.parse(job.notBefore ?? '') > Date.now()
  return (
    <>
      <p class="line">
        <strong role="status">Waiting</strong>
        {place !== undefined && <span class="figure">{placeWords(place)}</span>}
      </p>
      <progress aria-label="Progress" />
      <p class="quiet">
        {isDelayed ? `It starts after ${whenWords(job.notBefore ?? '')}.` : startWords(seconds)} You can close this
        page; the work goes on.
      </p>
    </>
  )
}

const lookMs = 5000
/** Beyond it, the service does not count. */
const lastPlace = 1001

/** The job's place in the queue, and from how it has moved on the seconds until it starts. */
function useQueue(client: Client, { id }: Job): { place: number | undefined; seconds: number | undefined } {
  const [place, setPlace] = useState<number>()
  const estimate = useRef(new TimeLeft())
  useEffect(() => {
    const stop = new AbortController()
    const look = () =>
      client.getJob(id, { signal: stop.signal }).then(
        (job) => {
          setPlace(job.place ?? undefined)
          if (typeof job.place === 'number') estimate.current.observe(1 - job.place / lastPlace, performance.now())
        },
        // The chip says that the connection is lost.
        () => undefined,
      )
    void look()
    const timer = setInterval(() => void look(), lookMs)
    return () => {
      clearInterval(timer)
      stop.abort()
    }
  }, [client, id])
  const isCounted = place !== undefined && place < lastPlace
  return { place, seconds: isCounted ? estimate.current.seconds(performance.now()) : undefined }
}
