import { expect, test } from 'vitest'
import { firstViolation } from './first-violation.js'
import { allRemedies } from './history.js'

/** A day is a seed; STEMWORK_SIMULATION_SEED runs one history again, the one that a failure names. */
const replayed = process.env.STEMWORK_SIMULATION_SEED
const seed = replayed === undefined ? Math.floor(Date.now() / 86_400_000) * 100_000 : Number(replayed)
const histories = replayed === undefined ? Number(process.env.STEMWORK_SIMULATION_HISTORIES ?? 500) : 1

test(`nodes that freeze, die or are cut off lose, double and revive nothing (seed ${seed})`, async () => {
  const found = await firstViolation(allRemedies, { seed, histories })
  expect(found, `STEMWORK_SIMULATION_SEED=${found?.seed} npx vitest run test/simulation/simulation`).toBeUndefined()
}, 600_000)
