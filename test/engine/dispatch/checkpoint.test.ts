import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { AttemptCheckpoint } from '../../../src/core/engine/dispatch/attempt/attempt-checkpoint.js'
import { badInput, internalError } from '../../../src/core/engine/errors.js'
import { checkpointChain, checkpointsPrefix } from '../../../src/core/engine/job/checkpoint-keys.js'
import { claimCheckpointPrefix, partKey } from '../../../src/core/engine/job/checkpoint-keys.js'
import type { JobEngine } from '../../../src/core/engine/engine.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { partName, stageCheckpoint } from '../../../src/core/engine/runner/stage-checkpoint.js'
import type { Checkpoint } from '../../../src/core/engine/workflow/checkpoint.js'
import { defineWorkflow, type StageContext, type Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { bytes, gate, keys, recordingLogger, sharedBlobs, steppingClock, testEngine } from '../harness.js'

const checkpoints = { afterMs: 0, everyMs: 1 }
const units = 6

/** A workflow that counts from 0 in units of work, keeps its count when a checkpoint is due, and writes the result. */
function countingWorkflow(
  onUnit: (unit: number, context: StageContext) => Promise<void> | void,
  { input, keepsEach = false }: { input?: 'inputUrl'; keepsEach?: boolean } = {},
): { workflow: Workflow; done: number[] } {
  const done: number[] = []
  const workflow = defineWorkflow({
    id: 'test/count',
    name: 'Count',
    description: 'Counts.',
    params: z.looseObject({}),
    inputs: input ? [input] : [],
    outputs: { count: { fileName: 'count.txt', contentType: 'text/plain' } },
    stages: [
      {
        name: 'count',
        async run(context) {
          const { checkpoint, directory, outputPath } = context
          let text = ''
          for (const { path } of checkpoint.parts) text += await readFile(path, 'utf8')
          let unkept = ''
          for (let unit = text.length; unit < units; unit++) {
            done.push(unit)
            text += unit
            unkept += unit
            if (keepsEach) await due(checkpoint)
            if (checkpoint.isDue()) {
              await writeFile(join(directory, 'part'), unkept)
              await checkpoint.keep(join(directory, 'part'))
              unkept = ''
            }
            await onUnit(unit, context)
          }
          await writeFile(outputPath('count'), text)
        },
      },
    ],
  })
  return { workflow, done }
}

async function due(checkpoint: Checkpoint): Promise<void> {
  while (!checkpoint.isDue()) await new Promise((resolve) => setTimeout(resolve, 1))
}

/** Resolves once the blob store has that many parts. */
async function kept(blobs: BlobStore, count: number): Promise<void> {
  while ((await keys(blobs, [checkpointsPrefix])).filter((key) => key.includes('/part-')).length < count)
    await new Promise((resolve) => setTimeout(resolve, 2))
}

describe('a checkpoint', () => {
  test('lets the next attempt continue where the last one kept its work, and is removed at the end', async () => {
    const blobs = sharedBlobs()
    const failAt = [2, 4]
    const { workflow, done } = countingWorkflow(
      async (unit) => {
        await kept(blobs, unit + 1)
        if (unit !== failAt[0]) return
        failAt.shift()
        throw internalError(new Error('the attempt fails'))
      },
      { keepsEach: true },
    )
    const { engine, submit } = testEngine(workflow, { checkpoints }, { blobs })
    const job = await engine.run((await submit()).id)
    expect(job).toMatchObject({ status: 'SUCCEEDED' })
    expect(done).toEqual([0, 1, 2, 3, 4, 5])
    expect(await keys(blobs, ['results/', checkpointsPrefix])).toEqual([job?.outputs?.count?.key])
    expect(String(Buffer.concat(await readAll(blobs, job?.outputs?.count?.key)))).toBe('012345')
  })

  test('is found by another worker if the first has died, and an attempt that kept work does not count', async () => {
    const clock = steppingClock(Date.now())
    const jobs = memoryJobs({ clock: clock.now })
    const blobs = sharedBlobs()
    const { workflow, done } = countingWorkflow(() => {})
    let job
    const lost: Promise<unknown>[] = []
    const workers: JobEngine[] = []
    // Five workers die one after another, each one unit further; the limit is three attempts.
    for (let death = 0; death < 5; death++) {
      const stuck = gate()
      const doomed = countingWorkflow(
        async (unit, { signal }) => {
          await kept(blobs, unit + 1)
          stuck.open()
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        },
        { keepsEach: true },
      )
      // The worker's own heartbeat would extend the lease that the clock lets expire.
      const dispatch = { progressIntervalMs: 60_000 }
      const worker = testEngine(doomed.workflow, { checkpoints, dispatch }, { jobs, blobs })
      job ??= await worker.submit()
      const run = worker.engine.runOnce(job.id)
      await stuck.opened
      await beat(jobs, job.id)
      clock.advance(30_001)
      // The worker is not really dead, but settles nothing: the next claim fences it off.
      lost.push(run)
      workers.push(worker.engine)
    }
    const { engine } = testEngine(workflow, { checkpoints }, { jobs, blobs })
    expect(await engine.run(job?.id)).toMatchObject({ status: 'SUCCEEDED' })
    expect(done).toEqual([5])
    await Promise.all(workers.map((worker) => worker.close({ timeoutMs: 0 })))
    expect(await Promise.all(lost)).toEqual([undefined, undefined, undefined, undefined, undefined])
  })

  test('is never older than a fortieth of the attempt when the attempt is killed', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'stemwork-checkpoint-'))
    try {
      let now = 0
      const limits = { parts: [], afterMs: 5000, everyMs: 500, maxBytes: 1e6 }
      const host = { store: () => Promise.resolve(), stopped() {}, handBack: new AbortController().signal }
      const checkpoint = stageCheckpoint(directory, limits, host, () => now)
      let keptAt = 5000
      for (now = 100; now <= 120_000; now += 100) {
        if (checkpoint.isDue()) {
          keptAt = now
          await writeFile(join(directory, 'part'), 'x')
          await checkpoint.keep(join(directory, 'part'))
        } else if (now > 5000) {
          expect(now - keptAt).toBeLessThan(Math.max(500, now / 40))
        }
      }
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  test('is made when a shutdown hands the job back', async () => {
    const jobs = memoryJobs()
    const blobs = sharedBlobs()
    const reached = gate()
    // After the first part, the next is due in an hour.
    const slow = { afterMs: 0, everyMs: 3_600_000 }
    const { workflow } = countingWorkflow(async (unit, { checkpoint, signal }) => {
      if (unit === 0) await kept(blobs, 1)
      if (unit < 3) return
      if (unit === 3) {
        reached.open()
        return await due(checkpoint)
      }
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    const first = testEngine(workflow, { checkpoints: slow }, { jobs, blobs })
    await first.engine.start()
    const job = await first.submit()
    await reached.opened
    await first.engine.close({ timeoutMs: 0 })
    expect(await jobs.get(job.id)).toMatchObject({ status: 'QUEUED', attempts: 0 })

    const second = countingWorkflow(() => {})
    const { engine } = testEngine(second.workflow, { checkpoints: slow }, { jobs, blobs })
    expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED' })
    expect(second.done).toEqual([5])
  })

  test('is made when a shutdown hands the job back while an earlier part is being stored', async () => {
    const jobs = memoryJobs()
    await jobs.create(sampleJob())
    const job = await jobs.claim({ owner: 'w', leaseMs: 60_000 })
    if (!job) return expect.unreachable()
    const first = gate()
    const inner = sharedBlobs()
    const blobs = sharedBlobs({
      put: async (key, ...rest) => {
        if (key.endsWith('/part-0')) await first.opened
        return inner.put(key, ...rest)
      },
    })
    const { engine } = testEngine(countingWorkflow(() => {}).workflow, {}, { blobs })
    const directory = await mkdtemp(join(tmpdir(), 'stemwork-checkpoint-'))
    const checkpoint = new AttemptCheckpoint(job, {
      blobs,
      options: engine.options,
      logger: silentLogger,
      onStored: () => {},
      onStopped: () => {},
    })
    await checkpoint.order(directory, new AbortController().signal)
    for (const part of [0, 1]) await writeFile(join(directory, partName(part)), 'work')
    const { store } = checkpoint.of(directory)
    const storing = store(0)
    const events: string[] = []
    const handedBack = checkpoint.beforeHandBack(true).then(() => events.push('handed back'))
    first.open()
    await storing
    // Enough turns for a wait that mistakes the first part for the last.
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    events.push('last part')
    await store(1)
    await handedBack
    expect(events).toEqual(['last part', 'handed back'])
    await checkpoint.end()
    await rm(directory, { recursive: true })
  })

  test('keeps the downloaded input: its address is no longer needed', async () => {
    let downloads = 0
    const server = createServer((_, response) => response.end(`file ${++downloads}`)).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    try {
      const { port } = server.address() as { port: number }
      const blobs = sharedBlobs()
      const seen: string[] = []
      let hasFailed = false
      const { workflow } = countingWorkflow(
        async (unit, { inputs }) => {
          await kept(blobs, 1)
          if (unit === 1 && !hasFailed) {
            hasFailed = true
            throw internalError(new Error('the attempt fails'))
          }
          seen.push(await readFile(inputs.inputUrl?.path ?? '', 'utf8'))
        },
        { input: 'inputUrl' },
      )
      const fetch = { allow: [`127.0.0.1:${port}`] }
      const { engine, submit } = testEngine(workflow, { checkpoints, fetch }, { blobs })
      const job = await submit({ inputUrl: `http://127.0.0.1:${port}/song` })
      expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED' })
      expect(new Set(seen)).toEqual(new Set(['file 1']))
      expect(downloads).toBe(1)
    } finally {
      server.close()
    }
  })

  test('that cannot be stored does not affect the job otherwise', async () => {
    const plain = memoryBlobs()
    const blobs = sharedBlobs({
      ...plain,
      traits: { scope: 'shared' },
      put: (key, source, options) =>
        key.startsWith(checkpointsPrefix)
          ? Promise.reject(new Error('the blob store is away'))
          : plain.put(key, source, options),
    })
    const { logger, lines } = recordingLogger()
    const { workflow, done } = countingWorkflow(() => new Promise((resolve) => setTimeout(resolve, 2)))
    const { engine, submit } = testEngine(workflow, { checkpoints, logger }, { blobs })
    expect(await engine.run((await submit()).id)).toMatchObject({ status: 'SUCCEEDED', attempts: 1 })
    expect(done).toHaveLength(units)
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  })

  test.each([
    ['is off', { enabled: false }],
    ['is full', { maxBytes: 1 }],
    ['is for longer jobs', { afterMs: 3_600_000 }],
  ])('that %s keeps no more than its limit', async (_, settings) => {
    const blobs = sharedBlobs()
    const stored: string[] = []
    const put = blobs.put.bind(blobs)
    blobs.put = (key, ...rest) => {
      stored.push(key)
      return put(key, ...rest)
    }
    const { workflow } = countingWorkflow(() => new Promise((resolve) => setTimeout(resolve, 2)))
    const { engine, submit } = testEngine(workflow, { checkpoints: { ...checkpoints, ...settings } }, { blobs })
    expect(await engine.run((await submit()).id)).toMatchObject({ status: 'SUCCEEDED' })
    expect(stored.filter((key) => key.startsWith(checkpointsPrefix)).length).toBe('maxBytes' in settings ? 1 : 0)
  })

  test.each([
    ['on', sharedBlobs],
    // A store of this process keeps no parts; they are removed at once.
    ['off', memoryBlobs],
  ])('that is %s takes a file by its name in the run, and none from elsewhere', async (_, blobsOf) => {
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-checkpoint-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const elsewhere = join(folder, 'of-the-host')
    await writeFile(elsewhere, 'precious')
    const left: boolean[] = []
    const said: string[] = []
    const kept = defineWorkflow({
      id: 'test/keeps',
      name: 'Keeps',
      description: 'Keeps two files.',
      params: z.looseObject({}),
      inputs: [],
      outputs: { text: { fileName: 'text.txt', contentType: 'text/plain' } },
      stages: [
        {
          name: 'keep',
          async run({ checkpoint, directory }) {
            await writeFile(join(directory, 'part'), 'mine')
            await checkpoint.keep('part')
            left.push(existsSync(join(directory, 'part')))
            await symlink(folder, join(directory, 'link'))
            for (const path of [elsewhere, join(directory, 'link', 'of-the-host'), '../of-the-host'])
              await expect(checkpoint.keep(path)).rejects.toMatchObject({ code: 'INTERNAL_ERROR' })
            await checkpoint.keep(join('none', 'part')).catch(({ cause }: Error) => said.push((cause as Error).message))
            await checkpoint.keep(elsewhere)
          },
        },
      ],
      policy: { maxAttempts: 1 },
    })
    const { engine, submit } = testEngine(kept, { checkpoints }, { blobs: blobsOf() })
    const job = await engine.run((await submit()).id)
    expect(job).toMatchObject({ status: 'FAILED', error: { code: 'INTERNAL_ERROR' } })
    expect(job?.failure).toContain(`checkpoint.keep was given ${elsewhere}, which is not in the run's folder.`)
    expect(left).toEqual([false])
    expect(said).toEqual([
      expect.stringMatching(/^checkpoint\.keep was given none.part, whose folder does not exist\. /),
    ])
    expect(await readFile(elsewhere, 'utf8')).toBe('precious')
  })

  test('is removed with its job when that fails, is canceled or deleted; by the sweep when left behind', async () => {
    for (const end of ['fail', 'cancel', 'delete'] as const) {
      const blobs = sharedBlobs()
      const { workflow } = countingWorkflow(async (unit) => {
        await kept(blobs, 1)
        if (unit === 1)
          throw end === 'fail' ? badInput('decode_failed', 'broken') : internalError(new Error('once more'))
      })
      const dispatch = { retryDelayMs: 3_600_000 }
      const { engine, submit } = testEngine(workflow, { checkpoints, dispatch }, { blobs })
      const { id } = await submit()
      await engine.runOnce(id)
      if (end !== 'fail') {
        expect((await keys(blobs, [checkpointsPrefix])).length).toBeGreaterThan(0)
        await engine[end](id)
      }
      expect(await keys(blobs, [checkpointsPrefix])).toEqual([])
    }
    const blobs = sharedBlobs()
    const { engine, submit } = testEngine(
      countingWorkflow(() => {}).workflow,
      { retention: { orphansMs: 0 } },
      { blobs },
    )
    const { id } = await submit()
    await blobs.put(`${checkpointsPrefix}${id}/1-a/part-0`, bytes('of a job that waits'))
    await blobs.put(`${checkpointsPrefix}no-job/1-a/part-0`, bytes('of no job'))
    await new Promise((resolve) => setTimeout(resolve, 2))
    await engine.sweep({ files: true })
    expect(await keys(blobs, [checkpointsPrefix])).toEqual([`${checkpointsPrefix}${id}/1-a/part-0`])
  })
})

describe('what several claims have kept', () => {
  const key = (token: number, part: number) => partKey(claimCheckpointPrefix({ id: 'job', token, lease: null }), part)

  test('is joined in the order of the claims', () => {
    expect(checkpointChain([key(2, 2), key(1, 0), key(1, 1), key(10, 3)]).chains.get('')).toEqual([
      key(1, 0),
      key(1, 1),
      key(2, 2),
      key(10, 3),
    ])
  })

  test('ends where a superseded worker has continued, and at a gap', () => {
    // Claim 2 continued from parts 0 and 1 of claim 1, which kept part 2 later.
    expect(checkpointChain([key(1, 0), key(1, 1), key(1, 2), key(2, 2)]).chains.get('')).toEqual([
      key(1, 0),
      key(1, 1),
      key(2, 2),
    ])
    expect(checkpointChain([key(1, 0), key(1, 2)]).chains.get('')).toEqual([key(1, 0)])
    expect(checkpointChain([key(1, 0), key(2, 2)]).chains.get('')).toEqual([key(1, 0)])
    // Claim 2 started over.
    expect(checkpointChain([key(1, 0), key(1, 1), key(2, 0)]).chains.get('')).toEqual([key(2, 0)])
  })
})

/** Sends the heartbeat of a worker that has kept a part. */
async function beat(jobs: ReturnType<typeof memoryJobs>, id: string): Promise<void> {
  const job = await jobs.get(id)
  if (!job?.lease) throw new Error('the job is not running')
  const { token, nonce } = job.lease
  await jobs.apply(id, { kind: 'heartbeat', token, nonce, leaseMs: 30_000, progress: 0, stage: null, kept: true })
}

async function readAll(blobs: BlobStore, key = ''): Promise<Uint8Array[]> {
  const blob = await blobs.get(key)
  const chunks: Uint8Array[] = []
  for await (const chunk of blob?.body ?? []) chunks.push(chunk)
  return chunks
}
