import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Client, Job } from '../client/client.js'
import { Mixer } from './mixer.js'
import { ErrorNotice } from './error-notice.js'
import { ResultFiles } from './result-files.js'
import { isAudio, openStems, type Stem } from './stems.js'
import { explain, type Explanation, outputWords } from './words.js'

/** The stems to listen to, and every file to download. */
export function Results({ client, job, result }: { client: Client; job: Job; result: Record<string, string> }) {
  const files = useMemo(() => new ResultFiles(client, job.id, result), [client, job.id])
  const [stems, setStems] = useState<Stem[]>()
  const [problem, setProblem] = useState<Explanation>()
  useEffect(() => {
    const stop = new AbortController()
    openStems(files, stop.signal).then(setStems, (error: unknown) => stop.signal.aborted || setProblem(explain(error)))
    return () => stop.abort()
  }, [files])

  const others = files.names.filter((name) => !isAudio(files.fileName(name)))
  const link = (name: string) => (
    <li key={name}>
      <a
        class="button"
        href={result[name]}
        download
        onClick={(event) => {
          // The link on the page may have ended while the page was open.
          event.preventDefault()
          files.fresh(name).then(save, (error: unknown) => setProblem(explain(error)))
        }}
      >
        {outputWords(name)}
        <span class="quiet">{files.fileName(name).split('.').at(-1)?.toUpperCase()}</span>
      </a>
    </li>
  )

  return (
    <>
      {problem && <ErrorNotice problem={problem} />}
      {!stems && !problem && <p class="quiet">Loading the stems …</p>}
      {stems && stems.length > 0 && <Mixer stems={stems} />}
      <section class="downloads" aria-labelledby="downloads-title">
        <h2 id="downloads-title">Download</h2>
        <ul>{files.names.filter((name) => isAudio(files.fileName(name))).map(link)}</ul>
        {others.length > 0 && (
          <details>
            <summary>Pictures and data</summary>
            <ul>{others.map(link)}</ul>
          </details>
        )}
      </section>
    </>
  )
}

function save(url: string): void {
  const link = document.createElement('a')
  link.href = url
  link.download = ''
  link.click()
}
