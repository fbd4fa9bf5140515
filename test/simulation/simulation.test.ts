import { createHook } from 'node:async_hooks'
import { expect, test } from 'vitest'
import { firstViolation } from './first-violation.js'
import { allRemedies, runHistory } from './history.js'

/** The day is the seed; STEMWORK_SIMULATION_SEED repeats the history that a failure names. */
const replayed = process.env.STEMWORK_SIMULATION_SEED
const seed = replayed === undefined ? Math.floor(Date.now() / 86_400_000) * 100_000 : Number(replayed)
const histories = replayed === undefined ? Number(process.env.STEMWORK_SIMULATION_HISTORIES ?? 200) : 1

test(`nodes that freeze, die or are cut off never lose, double or revive a job (seed ${seed})`, async () => {
  console.log(`Simulation: ${histories} histories from seed ${seed} on.`)
  const found = await firstViolation(allRemedies, { seed, histories })
  expect(found, `STEMWORK_SIMULATION_SEED=${found?.seed} npx vitest run test/simulation/simulation`).toBeUndefined()
}, 600_000)

test('jobs run, succeed, are canceled, taken over and refused in histories, and batches end', async () => {
  const sums: Record<string, number> = {}
  for (let each = 0; each < 30; each++)
    for (const [what, count] of Object.entries((await runHistory(seed + each)).seen))
      sums[what] = (sums[what] ?? 0) + count
  expect(Object.entries(sums).filter(([, count]) => count === 0)).toEqual([])
  expect(sums.runs).toBeGreaterThan(100)
})

test('a history repeats by its seed, whatever ran before it', async () => {
  const traces = async (seeds: number[]) => {
    const found = new Map<number, number>()
    for (const each of seeds) found.set(each, (await runHistory(each)).trace)
    return found
  }
  const first = await traces([seed, seed + 1, seed + 2])
  expect(new Set(first.values()).size).toBe(3)
  expect(await traces([seed + 2, seed, seed + 1])).toEqual(first)
})

test('nothing in a history waits for real time or I/O', async () => {
  await runHistory(seed)
  const waits: string[] = []
  const ofTheWorld = ['PROMISE', 'TickObject', 'Immediate', 'Microtask']
  const hook = createHook({ init: (_id, type) => void (ofTheWorld.includes(type) || waits.push(type)) }).enable()
  await runHistory(seed).finally(() => hook.disable())
  expect(waits).toEqual([])
})
