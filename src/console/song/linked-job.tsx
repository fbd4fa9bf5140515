import { useEffect, useMemo, useState } from 'preact/hooks'
import { Connection } from '../../client/connection.js'
import { ClientError, hasEnded, type Job } from '../../client/client.js'
import { Brand } from '../elements/brand.js'
import { ErrorNotice } from '../elements/error-notice.js'
import { type Client, pageClient } from '../service/page-client.js'
import { Results } from './results.js'
import { rhythmWords, type SongRhythm } from '../player/rhythm.js'
import { baseUrl } from '../session/session.js'
import { explain, explainFailure, type Explanation, jobStateWords } from '../words/words.js'

const askMs = 5000

/** One song, for a visitor with a link but no key. @param link the part after `#job=` in the address */
export function LinkedJob({ link }: { link: string }) {
  const { client, job, problem } = useJobOf(link)
  const title = job?.name ?? 'Song'
  const [rhythm, setRhythm] = useState<SongRhythm>()
  useEffect(() => {
    document.title = `${title} – stemwork`
  }, [title])
  return (
    <>
      <header class="top">
        <Brand />
      </header>
      <main tabIndex={-1}>
        <article class="stack">
          <div class="title">
            <h1 dir="auto">{title}</h1>
            {job && (
              <p class="quiet">{[jobStateWords(job), rhythm && rhythmWords(rhythm)].filter(Boolean).join(' · ')}</p>
            )}
          </div>
          {problem && <ErrorNotice problem={problem} />}
          {!job && !problem && <p class="quiet">Loading …</p>}
          {job && <Shown client={client} job={job} onRhythm={setRhythm} />}
        </article>
      </main>
    </>
  )
}

function Shown({ client, job, onRhythm }: { client: Client; job: Job; onRhythm(found: SongRhythm | undefined): void }) {
  return (
    <>
      {job.status === 'QUEUED' && <p class="quiet">The song is waiting for its turn. This page updates itself.</p>}
      {job.error && <ErrorNotice problem={explainFailure(job.error)} />}
      {(job.result || job.status === 'STARTED') && <Results client={client} job={job} onRhythm={onRhythm} />}
    </>
  )
}

/** Whether the link will never open anything again; other failures may be temporary. */
function isFinal(error: unknown): boolean {
  return ClientError.is(error) && [400, 401, 403, 404, 410].includes(error.status)
}

/** The job of a link, read again until it has ended. */
function useJobOf(link: string): { client: Client; job: Job | undefined; problem: Explanation | undefined } {
  const options = useMemo(() => ({ baseUrl, apiKey: `job-link ${link}` }), [link])
  const client = useMemo(() => pageClient(options), [options])
  const [job, setJob] = useState<Job>()
  const [problem, setProblem] = useState<Explanation>()
  useEffect(() => {
    const id = link.slice(0, link.indexOf('/'))
    const stop = new AbortController()
    const { signal } = stop
    let timer: ReturnType<typeof setTimeout>
    let isCounted = false
    const ask = async () => {
      try {
        if (!isCounted) await new Connection(options).send(`/job/${id}/opened`, { method: 'POST', signal })
        isCounted = true
        const now = await client.getJob(id, { signal })
        setJob(now)
        setProblem(undefined)
        if (hasEnded(now)) return
      } catch (error) {
        if (signal.aborted) return
        setProblem(explain(error))
        if (isFinal(error)) return
      }
      timer = setTimeout(() => void ask(), askMs)
    }
    void ask()
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [client])
  return { client, job, problem }
}
