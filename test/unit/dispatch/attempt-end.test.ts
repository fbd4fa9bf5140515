import { expect, test } from 'vitest'
import { writeEnd } from '../../../src/core/engine/dispatch/attempt/attempt-end.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { JobChange } from '../../../src/core/engine/job/transitions.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'

const job = { id: 'job', token: 2, lease: { owner: 'me' } } as unknown as JobRecord
const change = { kind: 'expire' } as JobChange
const ended = { ...job, lease: null }
const outage = new Error('no store')

/** With a store that gives these answers, one for each try; later tries get the last one. */
async function end(answers: unknown[], { forMs = 10_000, found }: { forMs?: number; found?: unknown } = {}) {
  const tries: unknown[] = []
  const times: number[] = []
  const retries: unknown[] = []
  const jobs = {
    apply: async (id: string, what: JobChange) => {
      times.push(performance.now())
      tries.push([id, what])
      const answer = answers[Math.min(tries.length, answers.length) - 1]
      if (answer instanceof Error) throw answer
      return answer
    },
    get: async (id: string) => (id === 'job' ? found : undefined),
  } as unknown as JobStore
  const written = await writeEnd(jobs, job, change, { forMs, onRetry: (error) => retries.push(error) }).catch(
    (error: unknown) => ({ thrown: error }),
  )
  return { written, tries, retries, waits: times.slice(1).map((time, index) => time - times[index]!) }
}

test('the change is written once, and a lost claim is not asked for again', async () => {
  expect(await end([ended], { found: ended })).toMatchObject({ written: ended, tries: [['job', change]], retries: [] })
  expect((await end([undefined], { found: ended })).written).toBeUndefined()
})

test('an outage is waited for: 50 ms, then twice as long', async () => {
  const { written, tries, retries, waits } = await end([outage, outage, ended])
  expect(written).toBe(ended)
  expect(tries).toHaveLength(3)
  expect(retries).toEqual([outage, outage])
  expect(waits[0]).toBeGreaterThan(45)
  expect(waits[1]).toBeGreaterThan(95)
  expect(waits[1]).toBeLessThan(1500)
})

test('a write that only seemed to fail is seen in the record', async () => {
  expect((await end([outage, undefined], { found: ended })).written).toBe(ended)
  expect((await end([outage, undefined], { found: undefined })).written).toBeUndefined()
  expect((await end([outage, undefined], { found: { ...ended, token: 3 } })).written).toBeUndefined()
  expect((await end([outage, undefined], { found: job })).written).toBeUndefined()
})

test('after its time, the error of the store is thrown', async () => {
  expect(await end([outage], { forMs: 0 })).toMatchObject({ written: { thrown: outage }, retries: [] })
  const later = await end([outage], { forMs: 100 })
  expect(later).toMatchObject({ written: { thrown: outage }, retries: [outage] })
  expect(later.tries).toHaveLength(2)
})
