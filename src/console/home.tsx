import { useEffect, useState } from 'preact/hooks'
import type { Client, WorkflowSummary } from '../client/client.js'
import { DropZone } from './drop-zone.js'
import { type Choices, JobChoices } from './job-choices.js'
import { JobList } from './job-list.js'
import { ErrorNotice } from './error-notice.js'
import type { Uploads } from './uploads.js'
import { explain, type Explanation, sizeWords } from './words.js'

interface HomeProps {
  client: Client
  uploads: Uploads
  choices: Choices
  onChoices(choices: Choices): void
}

export function Home({ client, uploads, choices, onChoices }: HomeProps) {
  const [workflows, setWorkflows] = useState<WorkflowSummary[]>([])
  const [problem, setProblem] = useState<Explanation>()
  useEffect(() => {
    document.title = 'stemwork'
    const stop = new AbortController()
    client.workflows({ signal: stop.signal }).then(
      (all) => {
        setWorkflows(all)
        if (!all.some(({ id }) => id === choices.workflow) && all[0]) onChoices({ workflow: all[0].id })
      },
      (error: unknown) => stop.signal.aborted || setProblem(explain(error)),
    )
    return () => stop.abort()
  }, [client])

  return (
    <>
      <section class="send" aria-labelledby="send-title">
        <h1 id="send-title">Separate a song</h1>
        <DropZone onFiles={(files) => uploads.add(files, choices)} />
        <JobChoices client={client} workflows={workflows} choices={choices} onChange={onChoices} />
        {problem && <ErrorNotice problem={problem} />}
        {uploads.list.length > 0 && (
          <ul class="uploads" aria-label="Uploads">
            {uploads.list.map(({ number, file, progress, problem: failed }) => (
              <li key={number}>
                <div class="line">
                  <span class="name">{file.name}</span>
                  <span class="quiet">
                    {failed
                      ? 'Not sent'
                      : progress < 1
                        ? `${Math.floor(progress * 100)} % of ${sizeWords(file.size)}`
                        : 'Sent'}
                  </span>
                  <button
                    type="button"
                    class="plain"
                    aria-label={`${failed ? 'Dismiss' : 'Stop'} ${file.name}`}
                    onClick={() => uploads.remove(number)}
                  >
                    {failed ? 'Dismiss' : 'Stop'}
                  </button>
                </div>
                {failed ? (
                  <ErrorNotice problem={failed} />
                ) : (
                  <progress value={progress} aria-label={`Upload of ${file.name}`} />
                )}
              </li>
            ))}
          </ul>
        )}
      </section>
      <JobList client={client} workflows={workflows} />
    </>
  )
}
