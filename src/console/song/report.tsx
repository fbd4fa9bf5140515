import { useEffect, useState } from 'preact/hooks'
import type { Job } from '../../client/client.js'
import { headlinesOf } from '../words/figures.js'
import type { ResultFiles } from '../sources/result-files.js'

/** Figures that a job has measured, and their picture. */
export function Report({ job, files }: { job: Job; files: ResultFiles }) {
  const figures = headlinesOf(job)
  const picture = files.names.find((name) => files.storedName(name).endsWith('.svg') && name === 'picture')
  const [isShown, setShown] = useState(true)
  useEffect(() => setShown(true), [job.id])
  if (figures.length === 0) return null
  return (
    <section class="card" aria-label="Figures">
      <dl class="figures">
        {figures.map(({ label, value }) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {/* If files come from another host, the page's policy blocks them. */}
      {picture && isShown && (
        <img width="100%" src={files.link(picture)} alt="Loudness over time" onError={() => setShown(false)} />
      )}
    </section>
  )
}
