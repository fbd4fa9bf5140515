import type { Overview } from '../../http/operator/answers.js'
import { jobsAddress } from './address.js'
import { durationWords } from '../words/job-words.js'

/** Usage of applications this month, most processor time first. */
export function Usage({ overview: { usage, applications } }: { overview: Overview }) {
  if (usage.length === 0) return null
  const names = new Map(applications.map(({ id, name }) => [id, name]))
  return (
    <section class="card" aria-labelledby="usage">
      <h2 id="usage">Used this month</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Application</th>
            <th scope="col">Jobs ended</th>
            <th scope="col">Failed</th>
            <th scope="col">Audio</th>
            <th scope="col">Processor time</th>
          </tr>
        </thead>
        <tbody>
          {usage.map(({ app, jobs, failed, audioSeconds, processorSeconds }) => (
            <tr key={app}>
              <th scope="row">
                <a href={jobsAddress({ app })}>{names.get(app) ?? app}</a>
              </th>
              <Cell label="Jobs ended">{jobs.toLocaleString()}</Cell>
              <Cell label="Failed">{failed.toLocaleString()}</Cell>
              <Cell label="Audio">{durationWords(audioSeconds * 1000)}</Cell>
              <Cell label="Processor time">{durationWords(processorSeconds * 1000)}</Cell>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** A figure, labelled for layouts without a table head. */
export function Cell({ label, children }: { label: string; children: string }) {
  return (
    <td data-label={label} class="figure">
      {children}
    </td>
  )
}
