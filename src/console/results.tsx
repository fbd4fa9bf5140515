import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Client, Job } from '../client/client.js'
import { ErrorNotice } from './error-notice.js'
import { saveLink, type JobCommands } from './job-commands.js'
import { Mixer } from './mixer.js'
import { ResultFiles } from './result-files.js'
import { isAudio, openStems, type Stem } from './stems.js'
import { explain, type Explanation, outputWords, sizeWords } from './words.js'

/** The stems to listen to, and every file to download. */
export function Results({ client, job, commands }: { client: Client; job: Job; commands: JobCommands }) {
  const files = useMemo(() => new ResultFiles(client, job), [client, job.id])
  const [stems, setStems] = useState<Stem[]>()
  const [problem, setProblem] = useState<Explanation>()
  useEffect(() => {
    const stop = new AbortController()
    const onError = (error: unknown) => stop.signal.aborted || setProblem(explain(error))
    openStems(client, files, stop.signal).then(setStems, onError)
    return () => stop.abort()
  }, [files])

  const audio = files.names.filter((name) => isAudio(files.storedName(name)))
  const others = files.names.filter((name) => !audio.includes(name))
  const total = files.names.reduce((sum, name) => sum + (files.bytes(name) ?? 0), 0)
  const link = (name: string) => {
    const bytes = files.bytes(name)
    return (
      <li key={name}>
        <a
          class="button"
          href={files.link(name)}
          download={files.fileName(name)}
          onClick={(event) => {
            // The link on the page may have ended while the page was open.
            event.preventDefault()
            files.fresh(name).then(
              (url) => saveLink(url, files.fileName(name)),
              (error: unknown) => setProblem(explain(error)),
            )
          }}
        >
          {outputWords(name)}
          <span class="quiet">
            {files.storedName(name).split('.').at(-1)?.toUpperCase()}
            {bytes !== undefined && ` · ${sizeWords(bytes)}`}
          </span>
        </a>
      </li>
    )
  }

  return (
    <>
      {problem && <ErrorNotice problem={problem} />}
      {!stems && !problem && <p class="quiet">Loading the stems …</p>}
      {stems && stems.length > 0 && <Mixer stems={stems} song={job.name?.replace(/\.\w+$/, '') ?? 'Song'} />}
      <section class="downloads" aria-labelledby="downloads-title">
        <h2 id="downloads-title">Download</h2>
        <ul>
          {audio.map(link)}
          {files.names.length > 1 && (
            <li>
              <button type="button" class="button" onClick={() => void commands.archive([job])}>
                All (ZIP)
                {total > 0 && <span class="quiet">{sizeWords(total)}</span>}
              </button>
            </li>
          )}
        </ul>
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
