import { describe, expect, test } from 'vitest'
import { withFaults } from '../../../src/contract/faults.js'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { bytes, gate, keys, recordingLogger, steppingClock, testEngine, textOf, textWorkflow } from '../harness.js'

const hour = 60 * 60 * 1000
/** Blobs old enough to be judged: two hours pass between puts, including those of a pass. */
function oldBlobs() {
  let now = Date.now()
  return memoryBlobs({ clock: () => (now += 2 * hour) })
}

async function putOrphans(blobs: BlobStore, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await blobs.put(`results/gone-${n}/1/text.txt`, bytes('of a job that is gone'))
}

describe('the sweep of files', () => {
  test("removes no file of another deployment's folder, and says so", async () => {
    const blobs = oldBlobs()
    const first = testEngine(textWorkflow(), {}, { blobs })
    await first.engine.sweep({ files: true })
    const job = await first.submit()
    const done = await first.engine.run(job.id)
    const { logger, lines } = recordingLogger()
    const other = testEngine(textWorkflow(), { logger }, { blobs })
    expect(await other.engine.sweep({ files: true, allowMassRemoval: true })).toMatchObject({ orphans: 0 })
    expect(await keys(blobs)).toEqual([done?.outputs?.text?.key])
    expect(lines.map(({ level }) => level)).toContain('error')
    const belongsToOther = expect.stringContaining('belong to another job store') as string
    expect(await other.engine.health()).toMatchObject({ ok: true, warnings: [belongsToOther] })
    await putOrphans(blobs, 1)
    expect(await first.engine.sweep({ files: true })).toMatchObject({ orphans: 1 })
  })

  test('removes no file for a job store that was restored from a backup', async () => {
    const blobs = oldBlobs()
    const today = memoryJobs()
    const passes = async () => (await today.beginFilePass(0))?.pass ?? 0
    const deployment = (await today.beginFilePass(0))?.deployment ?? ''
    const kept = testEngine(textWorkflow(), {}, { jobs: today, blobs })
    await kept.engine.sweep({ files: true })
    const job = await kept.submit()
    await kept.engine.run(job.id)
    // The backup knows the deployment and fewer passes, but not the job.
    let restoredPass = 1
    const restored = {
      ...memoryJobs(),
      beginFilePass: async () => ({ deployment, pass: ++restoredPass }),
    }
    const { engine } = testEngine(textWorkflow(), {}, { jobs: restored, blobs })
    expect(restoredPass).toBeLessThan(await passes())
    // Nor once it has made as many passes as the replaced store.
    for (let pass = 0; pass < 9; pass++)
      expect(await engine.sweep({ files: true, allowMassRemoval: true })).toMatchObject({ orphans: 0 })
    expect(restoredPass).toBeGreaterThan(await passes())
    expect(await keys(blobs)).toHaveLength(1)
    const isOlder = expect.stringContaining('restored from a backup') as string
    expect(await engine.health()).toMatchObject({ ok: true, warnings: [isOlder] })
    // The remedy that the message names.
    await blobs.delete('deployment')
    expect(await engine.sweep({ files: true })).toMatchObject({ orphans: 1 })
  })

  test('removes the files of earlier claims of a job that waits for its next; keeps those of the last', async () => {
    const blobs = oldBlobs()
    const { engine, submit, parts } = testEngine(textWorkflow(), {}, { blobs })
    const { id } = await submit()
    const files: string[] = []
    for (const token of [1, 2]) {
      const job = await parts.jobs.claim({ id, owner: 'w', leaseMs: 1000, nonce: `n${token}` })
      files.push(`results/${id}/${token}-n${token}/text.txt`)
      await blobs.put(files.at(-1) ?? '', bytes('of this claim'))
      expect(job?.token).toBe(token)
      await parts.jobs.apply(id, { kind: 'requeue', token, nonce: `n${token}`, delayMs: 0, onShutdown: false })
    }
    expect(await engine.sweep({ files: true })).toMatchObject({ orphans: 1 })
    expect(await keys(blobs)).toEqual([files[1]])
  })

  test('removes the files of another claim with the token of the one that runs', async () => {
    const blobs = oldBlobs()
    const { engine, submit, parts } = testEngine(textWorkflow(), {}, { blobs })
    const { id } = await submit()
    await parts.jobs.claim({ id, owner: 'w', leaseMs: 1000, nonce: 'mine' })
    for (const nonce of ['mine', 'other']) await blobs.put(`results/${id}/1-${nonce}/text.txt`, bytes('text'))
    expect(await engine.sweep({ files: true })).toMatchObject({ orphans: 1 })
    expect(await keys(blobs)).toEqual([`results/${id}/1-mine/text.txt`])
  })

  test('removes none if most of many files are orphans, unless that is allowed', async () => {
    const blobs = oldBlobs()
    const { logger, lines } = recordingLogger()
    const { engine } = testEngine(textWorkflow(), { logger }, { blobs })
    await putOrphans(blobs, 20)
    expect(await engine.sweep({ files: true })).toMatchObject({ orphans: 0 })
    expect(lines.find(({ level }) => level === 'error')?.fields).toEqual({ files: 20, orphans: 20 })
    const isMost = expect.stringContaining('Most result files belong to no job') as string
    expect(await engine.health()).toMatchObject({ ok: true, warnings: [isMost] })
    expect(await engine.sweep({ files: true, allowMassRemoval: true })).toMatchObject({ orphans: 20 })
    expect(await keys(blobs)).toEqual([])
    expect((await engine.health()).warnings).toEqual([])
  })

  test('then keeps uploads and checkpoints, too, and removes only what unfinished writes have left', async () => {
    let leftovers = 3
    const blobs: BlobStore = { ...oldBlobs(), cleanUp: async () => leftovers-- }
    const { engine } = testEngine(textWorkflow(), { retention: { unusedUploadsMs: hour } }, { blobs })
    const others = ['checkpoints/gone-0/1-n/part-0', 'uploads/app/1']
    for (const key of others) await blobs.put(key, bytes('of a job that is gone'))
    await putOrphans(blobs, 20)
    expect(await engine.sweep({ files: true })).toMatchObject({ uploads: 0, orphans: 3 })
    expect(await keys(blobs, ['checkpoints/', 'uploads/'])).toEqual(others)
    expect(await engine.sweep({ files: true, allowMassRemoval: true })).toMatchObject({ uploads: 1, orphans: 23 })
    expect(await keys(blobs, ['checkpoints/', 'uploads/', 'results/'])).toEqual([])
  })

  test('continues after a file that cannot be removed', async () => {
    const blobs = oldBlobs()
    const stuck = withFaults(blobs, ({ method, args }) =>
      method === 'delete' && args[0] === 'results/gone-0/1/text.txt' ? new Error('permission denied') : undefined,
    )
    const { engine } = testEngine(textWorkflow(), {}, { blobs: stuck })
    await putOrphans(blobs, 3)
    expect(await engine.sweep({ files: true })).toMatchObject({ orphans: 2 })
    expect(await keys(blobs)).toEqual(['results/gone-0/1/text.txt'])
  })

  test('holds up no other cleaning, and close() ends it', async () => {
    const clock = steppingClock(Date.now())
    const jobs = memoryJobs({ clock: clock.now })
    const blobs = memoryBlobs()
    const listing = gate()
    const go = gate()
    const slow: BlobStore = {
      ...blobs,
      async *list(prefix) {
        listing.open()
        await go.opened
        yield* blobs.list(prefix)
      },
    }
    const { engine, submit } = testEngine(
      textWorkflow(),
      { retention: { resultsMs: 1000 }, dispatch: { sweepIntervalMs: 20 } },
      { jobs, blobs: slow },
    )
    const job = await submit()
    const done = await engine.run(job.id)
    const key = done?.outputs?.text?.key ?? ''
    expect(await textOf(blobs, key)).toContain('text of')
    await engine.start()
    await listing.opened
    clock.advance(2000)
    await expect.poll(() => blobs.stat(key)).toBeUndefined()
    const closed = engine.close()
    go.open()
    await closed
  })

  test('is made by only one of several processes at a time', async () => {
    const jobs = memoryJobs()
    const blobs = memoryBlobs()
    let lists = 0
    const counted: BlobStore = {
      ...blobs,
      list(prefix) {
        if (prefix === 'results/') lists++
        return blobs.list(prefix)
      },
    }
    const engines = Array.from({ length: 4 }, () => testEngine(textWorkflow(), {}, { jobs, blobs: counted }).engine)
    await Promise.all(engines.map((engine) => engine.start()))
    await expect.poll(() => lists).toBeGreaterThan(0)
    await Promise.all(engines.map((engine) => engine.close()))
    expect(lists).toBe(1)
  })
})

describe('jobs whose files cannot be removed', () => {
  test('do not keep others from being cleaned, however many they are', async () => {
    const clock = steppingClock(Date.now())
    const jobs = memoryJobs({ clock: clock.now })
    const blobs = memoryBlobs()
    let isMended = false
    const stuck = new Set<string>()
    const faulty = withFaults(blobs, ({ method, args }) =>
      method === 'deletePrefix' && !isMended && stuck.has(String(args[0])) ? new Error('permission denied') : undefined,
    )
    const { engine, submit } = testEngine(
      textWorkflow(),
      { limits: { maxQueuedJobs: 1000 }, retention: { resultsMs: 1000 } },
      { jobs, blobs: faulty },
    )
    for (let n = 0; n < 100; n++) {
      const { id } = await submit()
      await engine.run(id)
      stuck.add(`results/${id}/`)
      clock.advance(1)
    }
    const good = await submit()
    await engine.run(good.id)
    clock.advance(hour)
    await engine.sweep()
    expect(await engine.sweep()).toMatchObject({ expired: 1 })
    expect((await jobs.get(good.id))?.expired).toBe(true)
    isMended = true
    expect(await engine.sweep()).toMatchObject({ expired: 100 })
  })
})
