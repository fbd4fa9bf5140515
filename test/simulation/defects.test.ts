import { expect, test } from 'vitest'
import { firstViolation } from './first-violation.js'
import { allRemedies, type Remedies } from './history.js'

/** Violations that the simulation reports when a remedy is removed. */
const signs: Record<keyof Remedies, RegExp> = {
  takeOverGrace: /runs again on .*, though nothing but an outage happened/,
  runThroughOutages: /runs again on .*, though nothing but an outage happened/,
  batchWithJobs: /batch-\d is announced with 0 jobs/,
  endAbandoned: /has not ended: STARTED, canceled/,
  storeTime: /was purged before its time/,
  releaseLapsed: /has not ended: QUEUED/,
  checkLateClaims: /runs again on .*, though nothing but an outage happened/,
}

test.each(Object.entries(signs) as [keyof Remedies, RegExp][])(
  'the simulation finds the defect that %s prevents',
  async (remedy, sign) => {
    const remedies = { ...allRemedies, [remedy]: false }
    let said = ''
    for (let seed = 1; seed <= 3000 && !sign.test(said); seed++)
      said = (await firstViolation(remedies, { seed, histories: 1 }))?.violations.join('\n') ?? ''
    expect(said).toMatch(sign)
  },
  900_000,
)
