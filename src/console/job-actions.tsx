import { useId, useRef, useState } from 'preact/hooks'
import { type Client, hasEnded, type Job } from '../client/client.js'
import { explain, type Explanation } from './words.js'

interface JobActionsProps {
  client: Client
  job: Job
  onChange(job: Job): void
  onDeleted(): void
}

/** Stop for a running job, and delete, which asks first. */
export function JobActions({ client, job, onChange, onDeleted }: JobActionsProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  const [problem, setProblem] = useState<Explanation>()
  const name = job.name ?? 'this song'

  const act = async (action: () => Promise<void>) => {
    setProblem(undefined)
    try {
      await action()
    } catch (error) {
      setProblem(explain(error))
    }
  }

  return (
    <span class="actions">
      {problem && (
        <span class="quiet" role="alert">
          {problem.text}
        </span>
      )}
      {!hasEnded(job) && (
        <button
          type="button"
          class="plain"
          aria-label={`Stop ${name}`}
          onClick={() => void act(async () => onChange(await client.cancelJob(job.id)))}
        >
          Stop
        </button>
      )}
      <button type="button" class="plain" aria-label={`Delete ${name}`} onClick={() => dialog.current?.showModal()}>
        Delete
      </button>
      {/* Always there, because the browser alone knows whether it is open: it tells of a close only after the focus is back on the
          button, and a press in between has to open it again. */}
      <dialog ref={dialog} aria-labelledby={titleId}>
        <form method="dialog">
          <h2 id={titleId}>Delete {name}?</h2>
          <p class="quiet">The job and its files go for good.</p>
          <p class="buttons">
            <button>Keep</button>
            <button class="danger" onClick={() => void act(async () => client.deleteJob(job.id).then(onDeleted))}>
              Delete
            </button>
          </p>
        </form>
      </dialog>
    </span>
  )
}
