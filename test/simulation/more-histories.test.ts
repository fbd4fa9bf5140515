import { expect, test } from 'vitest'
import { firstViolation } from './first-violation.js'
import { allRemedies } from './history.js'

/** Seeds beyond those that continuous integration uses on the same day. */
const seed = Math.floor(Date.now() / 86_400_000) * 100_000 + 10_000
const histories = 2000

test(`in thousands of histories no job is lost, doubled or revived (seed ${seed})`, async () => {
  const found = await firstViolation(allRemedies, { seed, histories })
  expect(found, `STEMWORK_SIMULATION_SEED=${found?.seed} npx vitest run test/simulation/simulation`).toBeUndefined()
}, 600_000)
