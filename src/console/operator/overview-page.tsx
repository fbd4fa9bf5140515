import { useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import type { Overview, QueueFacts, WorkerState } from '../../http/operator/answers.js'
import { jobAddress, jobsAddress } from './address.js'
import { Confirm } from '../elements/confirm.js'
import { SelectFilter } from '../elements/filter-controls.js'
import { durationWords } from '../words/job-words.js'
import { type OnChange, Levers, ruleOf, StateChip } from './levers.js'
import { LimitsForm } from './limits-form.js'
import { RateChart } from './rate-chart.js'
import { timeOf } from './times.js'
import { Cell, Table, Usage } from './usage.js'

interface PageProps {
  overview: Overview
  onChange: OnChange
  onWorker: OnWorker
}

type OnWorker = (name: string, state: WorkerState) => Promise<void>

export function OverviewPage({ overview, onChange, onWorker }: PageProps) {
  const { queues, rates, rules, problems, warnings } = overview
  const sum = (figure: 'queued' | 'running') => queues.reduce((total, queue) => total + queue[figure], 0)
  const more = queues.some((queue) => queue.isMore) ? '+' : ''
  const failed = rates.reduce((total, rate) => total + rate.failed, 0)
  const finished = rates.reduce((total, rate) => total + rate.succeeded, 0)
  const deployment = ruleOf(rules, { kind: 'deployment' })
  return (
    <>
      <div class="line">
        <h1>Overview</h1>
        <div class="line">
          <span>
            The whole service: <StateChip rule={deployment} />
          </span>
          <Levers target={{ kind: 'deployment' }} name="the whole service" rules={rules} onChange={onChange} />
        </div>
      </div>
      {[...problems, ...warnings].map((text) => (
        <p class="problem" key={text}>
          {text}
        </p>
      ))}
      <section class="two figures" aria-label="Now">
        <Figure
          label="Waiting"
          value={sum('queued').toLocaleString() + more}
          href={jobsAddress({ status: 'QUEUED' })}
        />
        <Figure label="Running" value={sum('running').toLocaleString()} href={jobsAddress({ status: 'STARTED' })} />
        <Figure
          label="Done in the last hour"
          value={finished.toLocaleString()}
          tone="good"
          href={jobsAddress({ status: 'SUCCEEDED' })}
        />
        <Figure
          label="Failed in the last hour"
          value={failed.toLocaleString()}
          tone={failed > 0 ? 'danger' : 'text'}
          href={jobsAddress({ status: 'FAILED' })}
        />
      </section>
      <RateChart overview={overview} />
      <Queues overview={overview} onChange={onChange} />
      <div class="two">
        <Workers overview={overview} onWorker={onWorker} />
        <Failures overview={overview} />
      </div>
      <Applications overview={overview} onChange={onChange} />
      <Usage overview={overview} />
    </>
  )
}

function Figure({ label, value, tone = 'text', href }: { label: string; value: string; tone?: string; href: string }) {
  return (
    <a class="card big" href={href}>
      <strong class="figure" style={{ color: `var(--${tone})` }}>
        {value}
      </strong>{' '}
      <span class="quiet">{label}</span>
    </a>
  )
}

function Queues({ overview, onChange }: { overview: Overview; onChange: OnChange }) {
  return (
    <section class="card" aria-labelledby="queues">
      <h2 id="queues">Queues</h2>
      <Table heads={['Workflow', 'Workers', 'Waiting', 'Running', 'Longest wait', 'Typical time', 'State', '']}>
        {overview.queues.map((queue) => (
          <Queue key={`${queue.workflow} ${queue.needs.join(' ')}`} {...{ queue, overview, onChange }} />
        ))}
      </Table>
    </section>
  )
}

function Queue({ queue, overview, onChange }: { queue: QueueFacts; overview: Overview; onChange: OnChange }) {
  const { workflow, name, needs, queued, running, isMore, longestWaitMs, workers, slots, medianMs } = queue
  const target = { kind: 'workflow', id: workflow } as const
  return (
    <tr>
      <th scope="row">
        <a href={jobsAddress({ workflow })}>{name ?? workflow}</a>
        {name !== null && <code class="quiet">{workflow}</code>}
        {needs.length > 0 && <span class="quiet small">needs {needs.join(', ')}</span>}
      </th>
      <td data-label="Workers" class="figure">
        {workers === 0 && queued > 0 ? (
          <span class="pill unserved">No worker</span>
        ) : (
          `${workers.toLocaleString()} (${slots.toLocaleString()} ${slots === 1 ? 'slot' : 'slots'})`
        )}
      </td>
      <Cell label="Waiting">{queued.toLocaleString() + (isMore ? '+' : '')}</Cell>
      <Cell label="Running">{running.toLocaleString()}</Cell>
      <Cell label="Longest wait">{longestWaitMs === null ? '–' : durationWords(longestWaitMs)}</Cell>
      <Cell label="Typical time">{medianMs === null ? '–' : durationWords(medianMs)}</Cell>
      <td data-label="State">
        <StateChip rule={ruleOf(overview.rules, target)} />
      </td>
      <td>
        <Levers target={target} name={name ?? workflow} rules={overview.rules} onChange={onChange} />
      </td>
    </tr>
  )
}

function Workers({ overview, onWorker }: Omit<PageProps, 'onChange'>) {
  return (
    <section class="card" aria-labelledby="workers">
      <h2 id="workers">Workers</h2>
      {overview.workers.length === 0 && <p class="quiet">No worker is running. Jobs wait until one starts.</p>}
      <ul class="stack parts">
        {overview.workers.map(({ name, offers, seenAt, jobs }) => (
          <li class="stack part" key={`${name} ${offers?.startedAt}`}>
            <div class="line">
              <strong class="name">{name}</strong>
              {offers && <WorkerLevers name={name} state={offers.state} onWorker={onWorker} />}
              <span class="quiet small">seen {durationWords(overview.at - seenAt)} ago</span>
            </div>
            <p class="quiet small">
              {offers ? (
                <>
                  {jobs.length === 0 ? 'Idle' : `${jobs.length} of ${offers.slots} slots`}
                  {offers.labels.length > 0 && ` · ${offers.labels.join(', ')}`} ·{' '}
                  {offers.workflows.map((id) => id.replace(/^service\//, '')).join(', ')}
                </>
              ) : (
                'Not registered as a worker; known only from its jobs.'
              )}
            </p>
            {jobs.map(({ id, workflow, stage, progress, startedAt }) => (
              <div key={id}>
                <div class="line">
                  <a href={jobAddress(id)}>{workflow.replace(/^service\//, '')}</a>
                  <span class="quiet figure">
                    {stage ?? 'starting'} · {Math.floor(progress * 100)} % · {durationWords(overview.at - startedAt)}
                  </span>
                </div>
                <progress value={progress} aria-label={`Progress of ${id}`} />
              </div>
            ))}
          </li>
        ))}
      </ul>
    </section>
  )
}

const workerWords = { cordoned: 'Cordoned', draining: 'Draining' }

function WorkerLevers({ name, state, onWorker }: { name: string; state: WorkerState; onWorker: OnWorker }) {
  if (state !== 'open')
    return (
      <div class="levers" role="group" aria-label={`Control ${name}`}>
        <span class="chip">{workerWords[state]}</span>
        <Button class="main" onClick={() => void onWorker(name, 'open')}>
          Uncordon
        </Button>
      </div>
    )
  return (
    <div class="levers" role="group" aria-label={`Control ${name}`}>
      <Confirm
        label="Cordon"
        title={`Cordon ${name}?`}
        text="It takes no more jobs and finishes those that it runs. It learns of this with its next heartbeat."
        onConfirm={() => onWorker(name, 'cordoned')}
      />
      <Confirm
        label="Drain"
        title={`Drain ${name}?`}
        text="It takes no more jobs. Those still running after its grace period are handed over to other workers."
        onConfirm={() => onWorker(name, 'draining')}
      />
    </div>
  )
}

function Failures({ overview }: { overview: Overview }) {
  const { failures, isCounted } = overview
  const most = Math.max(1, ...failures.map(({ jobs }) => jobs))
  return (
    <section class="card" aria-labelledby="failures">
      <h2 id="failures">Failures by reason</h2>
      <p class="quiet small">Last 24 hours</p>
      {failures.length === 0 && <p class="quiet">{isCounted ? 'None.' : 'The job store keeps no ledger.'}</p>}
      <ul class="stack parts">
        {failures.map(({ code, reason, title, jobs, last }) => (
          <li key={`${code} ${reason}`}>
            <div class="line">
              <a href={jobsAddress({ error: reason ?? code })}>{title}</a>
              <strong class="figure">{jobs.toLocaleString()}</strong>
            </div>
            <div class="share" style={{ '--share': jobs / most }} aria-hidden="true" />
            <p class="quiet small">
              <code>{reason ?? code}</code> · last <a href={jobAddress(last.id)}>{timeOf(last.at)}</a>
            </p>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Applications({ overview, onChange }: { overview: Overview; onChange: OnChange }) {
  const { applications, rules } = overview
  const [chosen, setChosen] = useState('')
  if (applications.length === 0) return null
  const known = new Map(applications.map(({ id, name }) => [id, name]))
  const held = rules.filter(({ kind }) => kind === 'application').map(({ id }) => id)
  const shown = [...new Set([...held, ...(chosen === '' ? [] : [chosen])])]
  return (
    <section class="card" aria-labelledby="applications">
      <div class="line">
        <h2 id="applications">Applications</h2>
        <SelectFilter
          label="Control an application"
          all="Choose one …"
          choices={applications.map(({ id, name }) => [id, name])}
          chosen={chosen}
          onChange={(id) => setChosen(id ?? '')}
        />
      </div>
      {shown.length === 0 && <p class="quiet">All applications are open and have no limit.</p>}
      <ul class="stack parts">
        {shown.map((id) => (
          <li key={id} class="line">
            <span>
              <a href={jobsAddress({ app: id })}>{known.get(id) ?? id}</a>{' '}
              <StateChip rule={ruleOf(rules, { kind: 'application', id })} />
            </span>
            <Levers target={{ kind: 'application', id }} name={known.get(id) ?? id} rules={rules} onChange={onChange} />
            <LimitsForm app={id} name={known.get(id) ?? id} />
          </li>
        ))}
      </ul>
    </section>
  )
}
