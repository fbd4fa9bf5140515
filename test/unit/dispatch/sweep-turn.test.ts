import { expect, test, vi } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { sweepTurn } from '../../../src/core/engine/dispatch/sweep/sweep-turn.js'
import { worker } from './worker-samples.js'

/** Nodes of one deployment whose store has its own clock. */
function nodes(count: number, workers = 0) {
  let now = 1_700_000_000_000
  const { documents } = memoryJobs()
  const turns = Array.from(
    { length: count },
    () => () =>
      sweepTurn({
        jobs: { traits: { scope: 'shared' }, documents },
        clock: { time: async () => now },
        workers: { known: async () => Array.from({ length: workers }, (_, index) => worker(index)) },
        intervalMs: 15_000,
      }),
  )
  const sweeping = async () => (await Promise.all(turns.map((turn) => turn()))).filter(({ isOurs }) => isOurs)
  return { documents, sweeping, turns, after: (ms: number) => void (now += ms) }
}

test('of many nodes that look at once, one sweeps in each interval', async () => {
  const { sweeping, after } = nodes(20)
  for (let round = 0; round < 5; round++) {
    expect(await sweeping()).toHaveLength(1)
    expect(await sweeping()).toHaveLength(0)
    after(15_000)
  }
})

test('a node that took the turn and died has another one as its successor an interval later', async () => {
  const { turns, after } = nodes(2)
  expect(await turns[0]?.()).toMatchObject({ isOurs: true })
  after(13_000)
  expect(await turns[1]?.()).toMatchObject({ isOurs: false })
  after(2000)
  expect(await turns[1]?.()).toMatchObject({ isOurs: true })
})

test('a store whose clock was set back is swept all the same', async () => {
  const { turns, after } = nodes(2)
  expect(await turns[0]?.()).toMatchObject({ isOurs: true })
  after(-3_600_000)
  expect(await turns[1]?.()).toMatchObject({ isOurs: true })
  expect(await turns[0]?.()).toMatchObject({ isOurs: false })
})

test('each caller learns how many workers there are', async () => {
  const { turns } = nodes(2, 1000)
  expect(await turns[0]?.()).toEqual({ isOurs: true, workers: 1000 })
  expect(await turns[1]?.()).toEqual({ isOurs: false, workers: 1000 })
})

test('nodes of other versions find the turn under its name, until there was no sweep for ten intervals', async () => {
  const { documents, turns } = nodes(1)
  const put = vi.spyOn(documents, 'put')
  await turns[0]?.()
  expect(put.mock.calls).toMatchObject([[{ kind: 'sweep', key: 'turn', ttlMs: 150_000 }, { version: 0 }]])
})

test('a timer may be early by a tenth of the interval', async () => {
  const { turns, after } = nodes(2)
  await turns[0]?.()
  after(13_499)
  expect(await turns[1]?.()).toMatchObject({ isOurs: false })
  after(1)
  expect(await turns[1]?.()).toMatchObject({ isOurs: true })
})

test('the only process of a store always has the turn, and asks the store for nothing', async () => {
  const parts = { jobs: { traits: { scope: 'process' } } }
  const turn = sweepTurn(parts as unknown as Parameters<typeof sweepTurn>[0])
  expect(await turn).toEqual({ isOurs: true, workers: 1 })
})
