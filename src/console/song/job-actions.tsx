import { Button } from '../elements/button.js'
import { hasEnded, type Job } from '../../client/client.js'
import type { JobCommands, NamedJob } from '../jobs/job-commands.js'

interface JobActionsProps {
  /** Keeps the buttons in place from the upload to the end. */
  width?: string
  job: Job
  canRepeat: boolean
  commands: Pick<JobCommands, 'stop' | 'remove'> & { again(jobs: readonly NamedJob[]): unknown }
}

/** Buttons for the actions on a song. */
export function JobActions({ job, canRepeat, commands, width }: JobActionsProps) {
  const name = job.name ?? 'Untitled song'
  return (
    <span class="actions" style={{ minWidth: width }}>
      {canRepeat && (
        <Button class="plain" aria-label={`Send again: ${name}`} onClick={() => commands.again([job])}>
          Send again
        </Button>
      )}
      {!hasEnded(job) && (
        <Button class="plain" aria-label={`Stop ${name}`} onClick={() => void commands.stop([job])}>
          Stop
        </Button>
      )}
      <Button
        class="plain"
        style={{ marginLeft: width && 'auto' }}
        aria-label={`Delete ${name}`}
        onClick={() => commands.remove([job])}
      >
        Delete
      </Button>
    </span>
  )
}
