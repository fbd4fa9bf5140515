import { expect, test } from 'vitest'
import { counter, histogram, metricLines } from '../../src/http/prometheus.js'

test('a counter adds up by labels, whose values are escaped', () => {
  const jobs = counter('jobs_total', 'Jobs.')
  jobs.add({ event: 'created' }, 0)
  jobs.add({ event: 'created' })
  jobs.add({ event: 'a "b" \\ c\nd', status: '1' }, 2)
  expect(jobs.lines()).toEqual([
    '# HELP jobs_total Jobs.',
    '# TYPE jobs_total counter',
    'jobs_total{event="created"} 1',
    'jobs_total{event="a \\"b\\" \\\\ c\\nd",status="1"} 2',
  ])
})

test('each bucket of a histogram counts all values up to its bound', () => {
  const waits = histogram('wait_seconds', 'Waits.', [1, 5])
  for (const seconds of [0.5, 1, 3, 9]) waits.observe({ workflow: 'a' }, seconds)
  expect(waits.lines()).toEqual([
    '# HELP wait_seconds Waits.',
    '# TYPE wait_seconds histogram',
    'wait_seconds_bucket{workflow="a",le="1"} 2',
    'wait_seconds_bucket{workflow="a",le="5"} 3',
    'wait_seconds_bucket{workflow="a",le="+Inf"} 4',
    'wait_seconds_sum{workflow="a"} 13.5',
    'wait_seconds_count{workflow="a"} 4',
  ])
})

test('a metric without labels has no braces, and one without samples says what it is', () => {
  expect(metricLines('gauge', 'up', 'Ready.', [['', 1]]).at(-1)).toBe('up 1')
  expect(metricLines('gauge', 'up', 'Ready.', [])).toEqual(['# HELP up Ready.', '# TYPE up gauge'])
})
