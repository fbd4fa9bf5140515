import type { ComponentChildren } from 'preact'
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
      <Table heads={['Application', 'Jobs ended', 'Failed', 'Audio', 'Processor time']}>
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
      </Table>
    </section>
  )
}

/** @param heads of the columns; empty for one without a head */
export function Table({ heads, children }: { heads: readonly string[]; children: ComponentChildren }) {
  return (
    <table>
      <thead>
        <tr>
          {heads.map((head) =>
            head === '' ? (
              <td key={head} />
            ) : (
              <th key={head} scope="col">
                {head}
              </th>
            ),
          )}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
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
