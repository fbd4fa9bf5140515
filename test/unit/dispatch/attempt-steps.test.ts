import { readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { attemptSteps } from '../../../src/core/engine/dispatch/attempt/attempt-steps.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { StepRecord } from '../../../src/core/engine/job/step.js'
import type { KeptStep } from '../../../src/core/engine/ports/runner.js'
import { bytes, keys } from '../../engine/harness.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const leaseMs = 3000
const prefix = 'checkpoints/job/3-n/'
const job = sampleJob({ id: 'job', token: 3, lease: { owner: 'me', token: 3, nonce: 'n', until: 1 } })
const step: KeptStep & Pick<StepRecord, 'files' | 'value'> = {
  name: 'one',
  version: 'v',
  state: 'done',
  startedAt: 1,
  endedAt: 2,
  attempts: 1,
  until: null,
  error: null,
  value: 7,
  files: {},
}

const directory = folderOfEachTest()

/** Steps of a job with these records, whose claim is held unless `written` says otherwise. */
function stepsOf(records: StepRecord[] = [], written: JobRecord | undefined = job, isHeld = true) {
  const blobs = memoryBlobs()
  const applied: unknown[] = []
  const told: unknown[] = []
  const steps = attemptSteps({
    job: { ...job, steps: records },
    jobs: { apply: async (...change: unknown[]) => (applied.push(change), isHeld ? written : undefined) },
    blobs,
    leaseMs,
    aheadMs: 0,
    directory,
    signal: new AbortController().signal,
    outageMs: () => 0,
    answeredAt: () => 0,
    onRetry: () => {},
    onFiles: () => void told.push('files'),
    onKept: (...kept: unknown[]) => void told.push(kept),
    throughOutage: (work: () => Promise<unknown>) => work(),
  } as unknown as Parameters<typeof attemptSteps>[0])
  return { steps, blobs, applied, told }
}

test('a step is written into the record of its job, under its claim', async () => {
  const { steps, applied, told, blobs } = stepsOf([{ ...step, name: 'earlier' }])
  expect(await steps.save(step)).toEqual({})
  expect(applied).toEqual([['job', { kind: 'step', token: 3, nonce: 'n', leaseMs, step }]])
  expect(told).toEqual([[step, job]])
  expect(steps.kept).toEqual([{ ...step, name: 'earlier' }])
  expect(await steps.finished('one')).toEqual({ value: 7, files: {} })
  expect(await steps.finished('two')).toBeUndefined()
  expect(await keys(blobs, ['checkpoints/'])).toEqual([])
})

test('a step that returned nothing has the value null', async () => {
  const { steps } = stepsOf()
  await steps.save({ ...step, value: undefined })
  expect(await steps.finished('one')).toEqual({ value: null, files: {} })
})

test('a value of more than a thousand characters is stored beside the record', async () => {
  const [short, long] = ['x'.repeat(998), 'x'.repeat(999)]
  const { steps, applied, told, blobs } = stepsOf()
  await steps.save({ ...step, value: short })
  expect(await keys(blobs, ['checkpoints/'])).toEqual([])
  await steps.save({ ...step, name: 'two', value: long })
  expect(await keys(blobs, ['checkpoints/'])).toEqual([`${prefix}value-two`])
  expect(applied.at(-1)).toMatchObject(['job', { step: { value: null, valueKey: `${prefix}value-two` } }])
  expect(told.filter((each) => each === 'files')).toHaveLength(1)
  expect([(await steps.finished('one'))?.value, (await steps.finished('two'))?.value]).toEqual([short, long])
  await blobs.delete(`${prefix}value-two`)
  expect(await steps.finished('two')).toBeUndefined()
})

test('files of a step are stored, stay where they are, and are restored under its name', async () => {
  const path = join(directory, 'song')
  await writeFile(path, 'la la')
  const { steps, applied, told, blobs } = stepsOf()
  expect(await steps.save({ ...step, files: { song: { path, bytes: 0 } } })).toEqual({ song: { path, bytes: 5 } })
  const key = `${prefix}step-one/song`
  expect(applied).toMatchObject([['job', { step: { files: { song: { key, bytes: 5 } } } }]])
  expect(told[0]).toBe('files')
  expect(await readFile(path, 'utf8')).toBe('la la')
  const kept = join(directory, 'kept-one', 'song')
  expect(await steps.finished('one')).toEqual({ value: 7, files: { song: { path: kept, bytes: 5 } } })
  expect(await readFile(kept, 'utf8')).toBe('la la')
  expect((await stat(kept)).mode & 0o777).toBe(0o600)
  // Its folder exists by then.
  expect(await steps.finished('one')).toMatchObject({ value: 7 })
  await blobs.delete(key)
  expect(await steps.finished('one')).toBeUndefined()
})

test('what an earlier attempt kept is read from where it was put', async () => {
  const earlier = 'checkpoints/job/1-a/'
  const record = { ...step, value: null, valueKey: `${earlier}value-one`, files: {} }
  const { steps, blobs } = stepsOf([record])
  await blobs.put(`${earlier}value-one`, bytes('{"words":2}'))
  expect(await steps.finished('one')).toEqual({ value: { words: 2 }, files: {} })
})

test('a link is not accepted as a file of a step, and a lost claim keeps none', async () => {
  await symlink('/etc/hostname', join(directory, 'link'))
  const { steps, applied } = stepsOf()
  const linked = { ...step, files: { link: { path: join(directory, 'link'), bytes: 1 } } }
  await expect(steps.save(linked)).rejects.toThrow('is not a regular file')
  expect(applied).toEqual([])
  const lost = stepsOf([], undefined, false)
  await expect(lost.steps.save(step)).rejects.toMatchObject({ code: 'LEASE_LOST' })
  expect([lost.told, lost.steps.kept]).toEqual([[], []])
})
