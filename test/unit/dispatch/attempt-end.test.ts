import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { claimOf, suspensionOf, writeEnd } from '../../../src/core/engine/dispatch/attempt/attempt-end.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { JobChange } from '../../../src/core/engine/job/transitions.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import type { Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { resumeTime, stopTime } from '../../engine/stopped-time.js'

const job = { id: 'job', token: 2, lease: { owner: 'me' } } as unknown as JobRecord
const change = { kind: 'expire' } as JobChange
const ended = { ...job, lease: null }
const outage = new Error('no store')

beforeEach(stopTime)
afterEach(resumeTime)

/** Ends an attempt with a store that gives these answers, one per try; further tries get the last one. */
async function end(
  answers: unknown[],
  { forMs = 10_000, answeredAtMs, found }: { forMs?: number; answeredAtMs?: () => number; found?: unknown } = {},
) {
  const tries: unknown[] = []
  const times: number[] = []
  const retries: unknown[] = []
  const startedAt = performance.now()
  const jobs = {
    apply: async (id: string, what: JobChange) => {
      times.push(Math.round(performance.now() - startedAt))
      tries.push([id, what])
      const answer = answers[Math.min(tries.length, answers.length) - 1]
      if (answer instanceof Error) throw answer
      return answer
    },
    get: async (id: string) => (id === 'job' ? found : undefined),
  } as unknown as JobStore
  const ending = writeEnd(jobs, job, change, {
    outageMs: () => forMs,
    answeredAt: () => (answeredAtMs ? startedAt + answeredAtMs() : -Infinity),
    onRetry: (error) => retries.push(error),
  }).catch((error: unknown) => ({ thrown: error }))
  await vi.advanceTimersByTimeAsync(60_000)
  return { written: await ending, tries, retries, times }
}

test('the change is written once, and not repeated for a lost claim', async () => {
  expect(await end([ended], { found: ended })).toMatchObject({ written: ended, tries: [['job', change]], retries: [] })
  expect((await end([undefined], { found: ended })).written).toBeUndefined()
})

test('an outage is waited for: 50 ms, then twice as long each time, up to 2 s', async () => {
  const { written, retries, times } = await end([...Array.from({ length: 8 }, () => outage), ended])
  expect(written).toBe(ended)
  expect(times).toEqual([0, 50, 150, 350, 750, 1550, 3150, 5150, 7150])
  expect(retries).toEqual(Array.from({ length: 8 }, () => outage))
})

test('a write that only seemed to fail is found in the record', async () => {
  expect((await end([outage, undefined], { found: ended })).written).toBe(ended)
  expect((await end([outage, undefined], { found: undefined })).written).toBeUndefined()
  expect((await end([outage, undefined], { found: { ...ended, token: 3 } })).written).toBeUndefined()
  expect((await end([outage, undefined], { found: job })).written).toBeUndefined()
})

test('after the time limit, the error of the store is thrown', async () => {
  expect(await end([outage], { forMs: 0 })).toMatchObject({ written: { thrown: outage }, retries: [], times: [0] })
  expect(await end([outage], { forMs: 149 })).toMatchObject({ written: { thrown: outage }, times: [0, 50] })
  expect(await end([outage], { forMs: 150 })).toMatchObject({ written: { thrown: outage }, times: [0, 50, 150] })
})

test('after an answered heartbeat it counts as another outage, of which a write waits for three in a row', async () => {
  const lastTry = ({ times }: { times: number[] }) => times.at(-1)
  expect(lastTry(await end([outage], { forMs: 4000 }))).toBe(3150)
  expect(lastTry(await end([outage], { forMs: 4000, answeredAtMs: () => 3000 }))).toBe(5150)
  const always = () => 60_000
  expect(lastTry(await end([outage], { forMs: 4000, answeredAtMs: always }))).toBe(11_150)
})

test('a suspended claim says what it waits for, what it needs and what it used', () => {
  const held = { ...job, lease: { nonce: 'n' }, params: { model: 'large' } } as unknown as JobRecord
  const workflow = {
    params: z.looseObject({}),
    needs: ({ model }: { model: string }) => [model],
  } as unknown as Workflow
  expect(suspensionOf(held, workflow, { waitsFor: ['night'], needs: ['gpu'], processorSeconds: 7 })).toEqual({
    kind: 'suspend',
    token: 2,
    nonce: 'n',
    waitsFor: ['night'],
    pool: 'gpu large',
    processorSeconds: 7,
  })
  expect(claimOf({ token: 2, lease: null })).toEqual({ token: 2, nonce: undefined })
})
