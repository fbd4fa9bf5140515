import type { Overview } from '../../http/operator/answers.js'
import { jobsAddress } from './address.js'
import { duration } from './times.js'

/** What applications have used this month, most processor time first. */
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
              <td data-label="Jobs ended" class="figure">
                {jobs.toLocaleString()}
              </td>
              <td data-label="Failed" class="figure">
                {failed.toLocaleString()}
              </td>
              <td data-label="Audio" class="figure">
                {duration(audioSeconds * 1000)}
              </td>
              <td data-label="Processor time" class="figure">
                {duration(processorSeconds * 1000)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
