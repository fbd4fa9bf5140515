import { useCallback, useEffect, useState } from 'preact/hooks'
import type { AttemptFacts, JobFacts, Overview, StepFacts } from '../../http/operator/answers.js'
import { ClientError } from '../../client/client-error.js'
import { jobsAddress } from './address.js'
import { Confirm } from '../elements/confirm.js'
import { type Fact, FactList } from '../elements/fact-list.js'
import { jobStateWords } from '../words/first-words.js'
import { durationWords, sizeWords, stepStates } from '../words/job-words.js'
import { service } from './service.js'
import { timeOf } from './times.js'

const outcomes: Record<AttemptFacts['outcome'], string> = {
  running: 'Running',
  succeeded: 'Succeeded',
  failed: 'Failed',
  requeued: 'Failed, tried again',
  handed_back: 'Handed back by a worker that was stopped',
  suspended: 'Waited for a time, an event or another worker',
  preempted: 'Gave way to another application',
  lapsed: 'Its worker was lost',
}

interface JobPageProps {
  id: string
  overview: Overview
  onError(error: unknown): void
}

/** Everything that the service knows about one job. */
export function JobPage({ id, overview, onError }: JobPageProps) {
  const { job, isGone, load, remove } = useJob(id, overview.at, onError)
  if (isGone)
    return (
      <>
        <h1>This job no longer exists</h1>
        <p class="quiet">It was deleted, or its time was over.</p>
      </>
    )
  if (!job) return <p class="quiet centred">Loading …</p>
  const app = overview.applications.find((one) => one.id === job.app)?.name ?? job.app
  return (
    <>
      <p class="back">
        <a href={jobsAddress()}>All jobs</a>
      </p>
      <div class="line">
        <div class="title">
          <h1>{job.name ?? job.id}</h1>
          <p>
            <span class={`status ${job.status.toLowerCase()}`}>{jobStateWords(job)}</span>{' '}
            <span class="quiet">
              <a href={jobsAddress({ app: job.app })}>{app}</a> ·{' '}
              <a href={jobsAddress({ workflow: job.workflow })}>{job.workflow}</a>
            </span>
          </p>
        </div>
        <Levers job={job} onLoad={load} onDelete={remove} />
      </div>
      {job.waiting && <p class={job.waiting.reason === 'no_worker' ? 'problem' : 'quiet'}>{job.waiting.message}</p>}
      {job.error && (
        <div class="problem">
          <p>
            <strong>{job.error.title}.</strong> {job.error.message}
          </p>
          <p class="quiet small">
            <code>{job.error.code}</code> {job.error.reason !== null && <code>{job.error.reason}</code>}
          </p>
        </div>
      )}
      <Attempts job={job} now={overview.at} />
      {job.steps.length > 0 && <Steps steps={job.steps} now={overview.at} />}
      {job.failure !== null && (
        <section class="card" aria-labelledby="cause">
          <h2 id="cause">Why the last attempt failed</h2>
          <pre tabIndex={0}>{job.failure}</pre>
        </section>
      )}
      <Facts job={job} />
    </>
  )
}

function useJob(id: string, at: number, onError: (error: unknown) => void) {
  const [job, setJob] = useState<JobFacts>()
  const [isGone, setGone] = useState(false)
  const load = useCallback(
    async (work: () => Promise<JobFacts>) => {
      try {
        setJob(await work())
      } catch (error) {
        if (ClientError.is(error) && error.status === 404) setGone(true)
        else onError(error)
      }
    },
    [onError],
  )
  const remove = () => service.delete(id).then(() => setGone(true), onError)
  // Reloads each time the overview is read.
  useEffect(() => void load(() => service.job(id)), [id, load, at])
  return { job, isGone, load, remove }
}

interface LeversProps {
  job: JobFacts
  onLoad(work: () => Promise<JobFacts>): Promise<void>
  onDelete(): Promise<void>
}

function Levers({ job: { id, status, cancelRequested }, onLoad, onDelete }: LeversProps) {
  return (
    <div class="levers" role="group" aria-label="Control this job">
      {status !== 'SUCCEEDED' && status !== 'FAILED' && (
        <Confirm
          label={cancelRequested ? 'Canceling …' : 'Cancel job'}
          title="Cancel this job?"
          text="It ends as failed, with the code CANCELED. Its work is lost."
          action="Cancel job"
          isDanger
          onConfirm={() => onLoad(() => service.act('cancel', id))}
        />
      )}
      {status === 'FAILED' && (
        <Confirm
          label="Run again"
          title="Run this job again?"
          text="It is queued again with its params and inputs; its attempts start from zero."
          onConfirm={() => onLoad(() => service.act('retry', id))}
        />
      )}
      <Confirm
        label="Delete"
        title="Delete this job?"
        text="This deletes it for its client, too, with its inputs and results. If it is running, it is stopped."
        action="Delete job"
        isDanger
        onConfirm={onDelete}
      />
    </div>
  )
}

function Attempts({ job, now }: { job: JobFacts; now: number }) {
  const end = job.completedAt ?? now
  const span = Math.max(1, end - job.createdAt)
  const share = (at: number) => Math.max(0, Math.min(100, ((at - job.createdAt) / span) * 100))
  return (
    <section class="card" aria-labelledby="attempts">
      <div class="line">
        <h2 id="attempts">Attempts</h2>
        <span class="quiet small figure">
          {durationWords(span)} from {timeOf(job.createdAt)} to {job.completedAt === null ? 'now' : timeOf(end)}
        </span>
      </div>
      <svg class="chart" height="17" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        <rect class="status none" x={0} y={2} width={100} height={2} />
        {job.history.map(({ token, startedAt, endedAt, outcome }) => {
          const from = share(startedAt)
          return (
            <rect
              key={token}
              class={`status ${outcome}`}
              x={from}
              y={0}
              width={Math.max(0.6, share(endedAt ?? now) - from)}
              height={6}
            />
          )
        })}
      </svg>
      {job.history.length === 0 && (
        <p class="quiet">
          None yet.{job.queuePosition !== null && ` It is number ${job.queuePosition} in its application's queue.`}
        </p>
      )}
      <ol class="stack parts">
        {job.history.map(({ token, worker, startedAt, endedAt, outcome, reason }) => (
          <li class="stack part" key={token}>
            <div class="line">
              <span class={`status ${outcome}`}>{outcomes[outcome]}</span>
              <span class="quiet figure">
                {timeOf(startedAt)} · {durationWords((endedAt ?? now) - startedAt)}
              </span>
            </div>
            <p class="quiet small">
              Attempt {token} on <strong>{worker}</strong>
              {outcome === 'running' && ` · ${job.stage ?? 'begins'} · ${Math.floor(job.progress * 100)} %`}
            </p>
            {reason !== null && <p class="small">{reason}</p>}
          </li>
        ))}
      </ol>
      {job.attempts > job.history.length && (
        <p class="quiet small">
          Of {job.attempts} attempts, the last {job.history.length} are remembered.
        </p>
      )}
    </section>
  )
}

function Steps({ steps, now }: { steps: readonly StepFacts[]; now: number }) {
  return (
    <section class="card" aria-labelledby="steps">
      <h2 id="steps">Steps</h2>
      <ol class="stack parts">
        {steps.map(({ name, state, startedAt, endedAt, attempts, until, error, files }) => (
          <li class="stack part" key={name}>
            <div class="line">
              <span>
                <strong>{name}</strong> · {stepStates[state]}
                {attempts > 1 && `, after ${attempts} tries`}
              </span>
              <span class="quiet figure">
                {timeOf(startedAt)} · {durationWords((endedAt ?? now) - startedAt)}
              </span>
            </div>
            {state === 'waiting' && until !== null && <p class="quiet small">At most until {timeOf(until)}</p>}
            {error && (
              <p class="small">
                {error.code}: {error.message}
              </p>
            )}
            {files.length > 0 && (
              <p class="quiet small">
                {files.map(({ name: file, bytes }) => `${file} (${sizeWords(bytes)})`).join(', ')}
              </p>
            )}
          </li>
        ))}
      </ol>
    </section>
  )
}

function Facts({ job }: { job: JobFacts }) {
  const facts: Fact[] = [
    ['Job', job.id],
    ['Batch', job.batchName],
    ['Needs', job.needs.join(', ') || null],
    ['Priority', job.priority === 0 ? null : String(job.priority)],
    ['Not before', job.notBefore === null || job.status !== 'QUEUED' ? null : timeOf(job.notBefore)],
    ['Deadline', job.deadline === null ? null : timeOf(job.deadline)],
    ['Files kept until', job.expiresAt === null ? null : timeOf(job.expiresAt)],
    ['Trace', job.traceId],
    ['Params', shownParams(job.params)],
    ['Metadata', Object.keys(job.metadata).length === 0 ? null : JSON.stringify(job.metadata)],
    ['Results', job.outputs.map(({ fileName, bytes }) => `${fileName} (${sizeWords(bytes)})`).join(', ') || null],
    ...job.webhooks.map(({ event, url, outcome, attempts, status }): Fact => [
      `Webhook ${event}`,
      `${outcome.replaceAll('_', ' ')} after ${attempts} ` +
        `${attempts === 1 ? 'try' : 'tries'}${status === null ? '' : `, last answer ${status}`}: ${url}`,
    ]),
  ]
  return <FactList title="Facts" facts={facts} />
}

/** The query of a signed link grants access to the file, and must not be shown. */
function shownParams(params: unknown): string {
  return JSON.stringify(params, (_, value: unknown) =>
    typeof value === 'string' && /^https?:[^?]*\?.*\bsignature=/.test(value) ? `${value.split('?', 1)[0]}?…` : value,
  )
}
