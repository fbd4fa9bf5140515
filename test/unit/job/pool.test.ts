import { expect, test } from 'vitest'
import { hasAmounts, labelSchema, offered, offersTo, poolOf, servesPool } from '../../../src/core/engine/job/pool.js'

test('a label may end with 1 to 256 units', () => {
  for (const label of ['gpu', 'model:htdemucs', 'a'.repeat(60), 'gpuMemory=1', 'gpuMemory=256'])
    expect(labelSchema.safeParse(label).success).toBe(true)
  for (const label of ['', 'a'.repeat(61), 'a b', '=1', 'gpuMemory=', 'gpuMemory=0', 'gpuMemory=257', 'gpuMemory=1.5'])
    expect(labelSchema.safeParse(label).success).toBe(false)
})

test('a worker serves a pool if it has each label, and as many units as needed', () => {
  const pool = poolOf(['memory=6', 'gpu', 'gpu'])
  expect(pool).toBe('gpu memory=6')
  const serves = (...labels: string[]) => servesPool(labels, pool)
  expect([serves('gpu', 'memory=6'), serves('gpu', 'memory=24', 'memory=2'), servesPool(undefined, pool)]).toEqual([
    true,
    true,
    true,
  ])
  for (const labels of [['gpu'], ['memory=6'], ['gpu', 'memory=5'], ['gpu', 'other=6'], ['gpu', 'memory']])
    expect(serves(...labels)).toBe(false)
  expect(servesPool(['memory=6'], 'gpu')).toBe(false)
  expect(servesPool([], '')).toBe(true)
})

test('every number of units that running jobs leave is offered', () => {
  const labels = ['gpu', 'memory=4']
  expect(offered(labels, [])).toEqual(['gpu', 'memory=1', 'memory=2', 'memory=3', 'memory=4'])
  // A composition reserves what the largest of its steps needs; other jobs get none of it.
  expect(offered(labels, ['gpu memory=1 memory=2', 'gpu', 'other=3'])).toEqual(['gpu', 'memory=1', 'memory=2'])
  expect(offered(labels, ['memory=3', 'memory=3'])).toEqual(['gpu'])
})

test('steps of a job are offered the labels of its worker, and the units of the job', () => {
  expect([hasAmounts(['gpu', 'memory=4']), hasAmounts(['gpu']), hasAmounts([])]).toEqual([true, false, false])
  expect(offersTo('memory=2', ['gpu', 'memory=4'])).toEqual(['gpu', 'memory=2'])
  expect(offersTo('', ['gpu'])).toEqual(['gpu'])
})
