import type { Job } from '../../client/client.js'
import { type Fact, FactList } from '../elements/fact-list.js'
import { figuresOf } from '../words/figures.js'
import { baseUrl } from '../session/session.js'
import { durationOf } from '../words/song-facts.js'
import { Snippets } from './snippets.js'
import {
  clock,
  durationWords,
  explainFailure,
  jobStateWords,
  outputWords,
  sizeWords,
  stepStates,
  timingWords,
  whenWords,
} from '../words/words.js'

/** How a job ran, and with what, for people who ask why or want to repeat it from a program. */
export function Details({ job }: { job: Job }) {
  const { details, error, files } = job
  const timings = Object.entries((details?.timingsMs ?? {}) as Record<string, number>)
  const warnings = (details?.warnings ?? []) as string[]
  const figures = figuresOf(job)
  return (
    <div class="stack details">
      <FactList title="Timeline" facts={timelineOf(job)} />
      {error && (
        <FactList
          title="Why it failed"
          facts={[
            ['Meaning', explainFailure(error).text],
            ['Message', error.message],
            ['Code', error.reason ? `${error.code}, ${error.reason}` : error.code],
            ['May succeed when sent again', error.retryable ? 'Yes' : 'No'],
          ]}
        />
      )}
      {warnings.length > 0 && (
        <section class="card" aria-labelledby="warnings-title">
          <h2 id="warnings-title">Warnings</h2>
          <ul>
            {warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </section>
      )}
      <FactList title="Job" facts={factsOf(job)} />
      {figures.length > 0 && <FactList title="Figures" facts={figures.map(({ label, value }) => [label, value])} />}
      {timings.length > 0 && (
        <FactList
          title="Timings"
          note="Parts of the work overlap, so these add up to more than the job took."
          facts={timings.map(([part, ms]) => [timingWords(part), durationWords(ms)])}
        />
      )}
      {job.steps && <FactList title="Steps" facts={job.steps.map((step) => [step.name, stepWords(step)])} />}
      <FactList
        title="Parameters"
        facts={Object.entries(job.workflowParams).map(([name, value]): Fact => [
          name,
          typeof value === 'string' ? shownParam(value) : JSON.stringify(value),
        ])}
      />
      {Object.keys(job.metadata).length > 0 && <FactList title="Metadata" facts={Object.entries(job.metadata)} />}
      {files && (
        <FactList
          title="Files"
          facts={Object.entries(files).map(([name, { fileName, bytes }]): Fact => [
            outputWords(name),
            `${fileName} · ${sizeWords(bytes)}`,
          ])}
        />
      )}
      <Snippets job={job} />
    </div>
  )
}

function timelineOf(job: Job): Fact[] {
  const { createdAt, startedAt, completedAt, result, expiresAt } = job
  return [
    ['Sent', whenWords(createdAt)],
    ['Started', startedAt && `${whenWords(startedAt)} · waited ${between(createdAt, startedAt)}`],
    [
      jobStateWords(job),
      completedAt && `${whenWords(completedAt)} · took ${between(startedAt ?? createdAt, completedAt)}`,
    ],
    ['Files kept until', result && expiresAt && whenWords(expiresAt)],
  ]
}

/** Facts about the result, and about its models. */
function factsOf(job: Job): Fact[] {
  const { details } = job
  const models = [details?.model ?? []].flat() as { name?: string; version?: string; sha256?: string }[]
  const clipped = details?.clippedSamples
  const seconds = durationOf(job)
  return [
    ['ID', job.id],
    ['Workflow', `${job.workflow.name} (${job.workflow.id})`],
    ['Batch', job.batchName],
    ['Length', seconds === undefined ? undefined : clock(seconds)],
    [
      'Sample rate',
      typeof details?.sampleRate === 'number' ? `${details.sampleRate.toLocaleString('en')} Hz` : undefined,
    ],
    ['Clipped samples', typeof clipped === 'number' ? String(clipped) : undefined],
    ...models.flatMap(({ name, version, sha256 }): Fact[] => [
      ['Model', [name, version].filter(Boolean).join(' ')],
      ['Model hash (SHA-256)', sha256],
    ]),
    ['Better results', typeof details?.hint === 'string' ? details.hint : undefined],
  ]
}

function stepWords({ state, startedAt, endedAt, attempts, error, files }: NonNullable<Job['steps']>[number]): string {
  const words = stepStates[state]
  return [
    endedAt ? `${words} after ${between(startedAt, endedAt)}` : words,
    attempts > 1 && `${attempts} tries`,
    error?.message,
    ...Object.entries(files).map(([name, bytes]) => `${name} (${sizeWords(bytes)})`),
  ]
    .filter(Boolean)
    .join(' · ')
}

/** The address of an uploaded file says nothing, and its signature must stay private. */
function shownParam(value: string): string {
  return value.startsWith(`${baseUrl}/storage/uploads/`) ? 'an uploaded file' : value
}

function between(from: string, to: string): string {
  return durationWords(Date.parse(to) - Date.parse(from))
}
