import type { Client } from '../service/page-client.js'
import { durationWords } from '../words/job-words.js'
import { useAnswer } from '../elements/use-answer.js'

/** Usage of the application by workflow; nothing without usage, or where the service keeps no ledger. */
export function UsedThisMonth({ client }: { client: Client }) {
  const totals = useAnswer(() => client.usage({ groupBy: ['workflow'] }), [client])
  if (!totals || totals.length === 0) return null
  return (
    <section class="stack">
      <h2>Used this month</h2>
      <ul class="rows" aria-label="Used this month">
        {totals.map(({ workflow, jobs, succeeded, audioSeconds, processorSeconds }) => (
          <li key={workflow}>
            <div class="row">
              <span class="name">{workflow?.replace(/^service\//, '')}</span>
              <span class="quiet">
                {jobs === 1 ? '1 job' : `${jobs.toLocaleString()} jobs`}
                {succeeded < jobs && `, ${(jobs - succeeded).toLocaleString()} failed`} ·{' '}
                {durationWords(audioSeconds * 1000)} of audio · {durationWords(processorSeconds * 1000)} of processor
                time
              </span>
            </div>
          </li>
        ))}
      </ul>
    </section>
  )
}
