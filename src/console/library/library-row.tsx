import type { Job } from '../../client/client.js'
import type { Client } from '../service/page-client.js'
import { JobActions } from '../song/job-actions.js'
import { stemsWorkflowId } from '../options/choices.js'
import type { JobCommands } from '../jobs/job-commands.js'
import type { RowPlace } from '../elements/long-list.js'
import { jobAddress, libraryAddress } from '../route.js'
import { canRepeat, durationOf } from '../words/song-facts.js'
import { useSecondsUntil } from '../words/time-left.js'
import { whenUsed } from '../when-used.js'
import { clock, explainFailure, jobStateWords, positionWords, timeLeftWords, whenWords } from '../words/first-words.js'

const MiniWaveform = whenUsed(({ MiniWaveform }) => MiniWaveform, <span class="mini-place" />)

interface LibraryRowProps {
  client: Client
  job: Job
  place: RowPlace
  isChosen: boolean
  onChoose(isChosen: boolean): void
  commands: JobCommands
}

export function LibraryRow({ client, job, place, isChosen, onChoose, commands }: LibraryRowProps) {
  const name = job.name?.trim() || 'Untitled song'
  const seconds = durationOf(job)
  const isRunning = job.status === 'STARTED'
  return (
    <li {...place} class={`${job.status.toLowerCase()}${isChosen ? ' chosen' : ''}`}>
      <input
        type="checkbox"
        aria-label={`Select ${name}`}
        checked={isChosen}
        onChange={(event) => onChoose(event.currentTarget.checked)}
      />
      <div class="row">
        <a class="name" dir="auto" href={jobAddress(job.id)} title={name}>
          {name}
        </a>
        <span class="quiet">
          {whenWords(job.createdAt)}
          {seconds !== undefined && ` · ${clock(seconds)}`}
          {job.workflow.id !== stemsWorkflowId && ` · ${job.workflow.name}`}
          {job.batchName && (
            <>
              {' · '}
              <a href={libraryAddress({ batch: job.batchName })}>{job.batchName}</a>
            </>
          )}
        </span>
      </div>
      <div class="state">
        <span class={`status ${job.error?.code === 'CANCELED' ? 'stopped' : job.status.toLowerCase()}`}>
          {jobStateWords(job)}
          {isRunning && ` ${Math.floor(job.progress * 100)} %`}
        </span>
        {job.result && <MiniWaveform client={client} job={job} />}
        <Rest job={job} name={name} />
        {job.error && job.error.code !== 'CANCELED' && <span class="quiet">{explainFailure(job.error).text}</span>}
      </div>
      <JobActions job={job} canRepeat={job.status === 'FAILED' && canRepeat(job)} commands={commands} />
    </li>
  )
}

/** Progress and time left of a running job, or the place of a waiting one. */
function Rest({ job, name }: { job: Job; name: string }) {
  const seconds = useSecondsUntil(job.estimate?.endsAt)
  if (job.status === 'QUEUED' && job.queuePosition) return <span class="quiet">{positionWords(job.queuePosition)}</span>
  if (job.status !== 'STARTED') return null
  return (
    <>
      <progress value={job.progress} aria-label={`Progress of ${name}`} />
      <span class="quiet">{timeLeftWords(seconds)}</span>
    </>
  )
}
