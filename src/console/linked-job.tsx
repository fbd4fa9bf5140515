import { useEffect, useMemo, useState } from 'preact/hooks'
import { Connection } from '../client/connection.js'
import { hasEnded, type Job } from '../client/client.js'
import { Brand } from './brand.js'
import { ErrorNotice } from './error-notice.js'
import { pageClient } from './page-client.js'
import { Results } from './results.js'
import { baseUrl } from './session.js'
import { Work } from './work.js'
import { explain, explainFailure, type Explanation } from './words.js'

const askMs = 5000

/** One song, for somebody who has a link to it and no key. @param link what follows `#job=` in the address */
export function LinkedJob({ link }: { link: string }) {
  const id = link.slice(0, link.indexOf('/'))
  const options = useMemo(() => ({ baseUrl, apiKey: `job-link ${link}` }), [link])
  const client = useMemo(() => pageClient(options), [options])
  const [job, setJob] = useState<Job>()
  const [problem, setProblem] = useState<Explanation>()

  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    let timer: ReturnType<typeof setTimeout>
    const read = async () => {
      const now = await client.getJob(id, { signal })
      setJob(now)
      if (!hasEnded(now)) timer = setTimeout(() => read().catch(onError), askMs)
    }
    const onError = (error: unknown) => signal.aborted || setProblem(explain(error))
    setProblem(undefined)
    new Connection(options).send(`/job/${id}/opened`, { method: 'POST', signal }).then(read).catch(onError)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [options])
  useEffect(() => {
    document.title = `${job?.name ?? 'Song'} – stemwork`
  }, [job?.name])

  return (
    <>
      <header class="top">
        <Brand />
      </header>
      <main tabIndex={-1}>
        <article class="job">
          <h1 dir="auto">{job?.name ?? 'Song'}</h1>
          {problem && <ErrorNotice problem={problem} />}
          {!job && !problem && <p class="quiet">Loading …</p>}
          {job?.status === 'QUEUED' && <p class="quiet">The song waits for its turn. This page goes on by itself.</p>}
          {job?.status === 'STARTED' && <Work client={client} job={job} />}
          {job?.error && <ErrorNotice problem={explainFailure(job.error)} />}
          {job && (job.result || job.status === 'STARTED') && <Results client={client} job={job} />}
        </article>
      </main>
    </>
  )
}
