import { hasEnded, type Job } from '../client/client.js'
import type { JobCommands } from './job-commands.js'

interface JobActionsProps {
  job: Job
  name: string
  /** Undefined where it is not offered. */
  onAgain: (() => void) | undefined
  onDelete(): void
  commands: JobCommands
}

/** What can be done with a song, as buttons. */
export function JobActions({ job, name, onAgain, onDelete, commands }: JobActionsProps) {
  return (
    <span class="actions">
      {onAgain && (
        <button type="button" class="plain" aria-label={`Send again: ${name}`} onClick={onAgain}>
          Send again
        </button>
      )}
      {!hasEnded(job) && (
        <button type="button" class="plain" aria-label={`Stop ${name}`} onClick={() => void commands.stop([job])}>
          Stop
        </button>
      )}
      <button type="button" class="plain" aria-label={`Delete ${name}`} onClick={onDelete}>
        Delete
      </button>
    </span>
  )
}
