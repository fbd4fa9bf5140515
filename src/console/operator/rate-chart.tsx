import type { Overview } from '../../http/operator/answers.js'
import { clockTime, minuteOf } from './times.js'

const height = 72
const width = 30
const gap = 6

/** Jobs that ended in the last hour, in steps of five minutes; also as text, for people who cannot see the chart. */
export function RateChart({ overview: { rates } }: { overview: Overview }) {
  const most = Math.max(1, ...rates.map(({ succeeded, failed }) => succeeded + failed))
  const scale = (height - 4) / most
  return (
    <section class="card" aria-labelledby="rates">
      <div class="line">
        <h2 id="rates">Jobs ended in the last hour</h2>
        <span class="quiet small">Per 5 minutes</span>
      </div>
      <svg
        class="chart"
        height={height}
        viewBox={`0 0 ${rates.length * (width + gap) - gap} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={described(rates)}
      >
        {rates.map(({ from, succeeded, failed }, index) => {
          const x = index * (width + gap)
          const bad = failed * scale
          const good = succeeded * scale
          return (
            <g key={from}>
              <rect class="status none" x={x} y={height - 2} width={width} height={2} />
              {good > 0 && <rect class="status succeeded" x={x} y={height - good - bad} width={width} height={good} />}
              {bad > 0 && <rect class="status failed" x={x} y={height - bad} width={width} height={bad} />}
            </g>
          )
        })}
      </svg>
      <div class="line quiet small" aria-hidden="true">
        <span>{minuteOf(rates[0]?.from ?? 0)}</span>
        <span class="flow">
          <span class="status succeeded">succeeded</span> <span class="status failed">failed</span>
        </span>
        <span>now</span>
      </div>
    </section>
  )
}

function described(rates: Overview['rates']): string {
  const steps = rates
    .filter(({ succeeded, failed }) => succeeded + failed > 0)
    .map(({ from, succeeded, failed }) => `from ${clockTime(from)}: ${succeeded} succeeded, ${failed} failed`)
  return steps.length === 0 ? 'No job has ended.' : steps.join('; ')
}
