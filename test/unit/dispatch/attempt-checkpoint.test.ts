import { readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { AttemptCheckpoint } from '../../../src/core/engine/dispatch/attempt/attempt-checkpoint.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import { type EngineSettings, resolveEngineOptions } from '../../../src/core/engine/options.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { bytes, gate, keys, recordingLogger, textOf } from '../../engine/harness.js'
import { resumeTime, stopTime } from '../../engine/stopped-time.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const { signal } = new AbortController()
const own = 'checkpoints/job/3-n/'
const earlier = 'checkpoints/job/2-a/'

const directory = folderOfEachTest()

/** The checkpoint of a claim with token 3, on a store with these files. */
async function checkpointOf({
  job = {},
  settings = {},
  scope = 'shared',
  files = [],
  store = {},
}: {
  job?: Partial<JobRecord>
  settings?: EngineSettings
  scope?: 'shared' | 'process'
  files?: string[]
  store?: Partial<BlobStore>
} = {}) {
  const memory = memoryBlobs()
  for (const key of files) await memory.put(key, bytes(key))
  const asked: string[] = []
  const blobs: BlobStore = {
    ...memory,
    traits: { scope },
    async *list(prefix) {
      asked.push(`list ${prefix}`)
      yield* memory.list(prefix)
    },
    async deletePrefix(prefix) {
      asked.push(`delete ${prefix}`)
      return await memory.deletePrefix(prefix)
    },
    ...store,
  }
  const stored = vi.fn()
  const { logger, lines } = recordingLogger()
  const lease = { owner: 'me', token: 3, nonce: 'n', until: 1 }
  const checkpoint = new AttemptCheckpoint(sampleJob({ id: 'job', token: 3, lease, ...job }), {
    blobs,
    options: resolveEngineOptions(settings),
    logger,
    onStored: stored,
    onStopped: () => {},
  })
  return { checkpoint, blobs: memory, asked, stored, lines }
}

describe('what earlier attempts kept', () => {
  test('is looked for only if they can have kept something', async () => {
    const step = { name: 's', version: '', state: 'done', startedAt: 0, endedAt: 0, attempts: 1, until: null, value: 0 }
    const looked = async (given: Parameters<typeof checkpointOf>[0]) => {
      const { checkpoint, asked } = await checkpointOf(given)
      await checkpoint.find(signal)
      return asked.length > 0
    }
    const stepOf = (fields: object) => ({ steps: [{ ...step, error: null, files: {}, ...fields }] }) as object
    expect(await looked({})).toBe(true)
    expect(await looked({ job: { token: 2 } })).toBe(true)
    expect(await looked({ job: { token: 1 } })).toBe(false)
    expect(await looked({ scope: 'process' })).toBe(false)
    expect(await looked({ settings: { checkpoints: { enabled: false } } })).toBe(false)
    expect(await looked({ job: { token: 1, ...stepOf({}) } })).toBe(false)
    expect(await looked({ job: { token: 1, ...stepOf({ valueKey: 'key' }) } })).toBe(true)
    expect(await looked({ job: { token: 1, ...stepOf({ files: { f: { key: 'key', bytes: 1 } } }) } })).toBe(true)
  })

  test('is passed with the order: its parts up to a gap, or their place in the store', async () => {
    const files = [0, 1, 2].map((part) => `${earlier}part-${part}`)
    const settings = { checkpoints: { afterMs: 1, everyMs: 2, maxBytes: 3 } }
    const { checkpoint, blobs } = await checkpointOf({ files, settings })
    expect([checkpoint.isOn, checkpoint.isResumed]).toEqual([true, false])
    await checkpoint.find(signal)
    expect(checkpoint.isResumed).toBe(true)
    await blobs.delete(files[1] ?? '')
    const order = await checkpoint.order(directory, signal)
    const path = join(directory, 'earlier-checkpoint-0')
    expect(order).toEqual({ parts: [{ path, bytes: files[0]?.length }], afterMs: 1, everyMs: 2, maxBytes: 3 })
    expect(await readFile(path, 'utf8')).toBe(files[0])
    expect((await checkpoint.order(directory, signal, 'other'))?.parts).toEqual([])
    const off = await checkpointOf({ files, settings: { checkpoints: { enabled: false } } })
    expect(await off.checkpoint.order(directory, signal)).toBeUndefined()

    const localFile = async (key: string) => ({ path: `/store/${key}`, bytes: 9 })
    const local = await checkpointOf({ files, store: { localFile } })
    await local.checkpoint.find(signal)
    const parts = files.map((key) => ({ path: `/store/${key}`, bytes: 9 }))
    expect((await local.checkpoint.order(directory, signal))?.parts).toEqual(parts)
  })

  test('includes the downloads, which are not repeated', async () => {
    const { checkpoint } = await checkpointOf({ files: [`${earlier}input-1`] })
    await checkpoint.find(signal)
    expect(checkpoint.isResumed).toBe(false)
    const path = join(directory, 'input')
    expect(await checkpoint.fetchInput(0, path, signal)).toBeUndefined()
    expect(await checkpoint.fetchInput(1, path, signal)).toEqual({ bytes: `${earlier}input-1`.length })
    expect(await readFile(path, 'utf8')).toBe(`${earlier}input-1`)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    // The file replaces the remains of an aborted attempt.
    expect(await checkpoint.fetchInput(1, path, signal)).toBeDefined()
  })

  test('is no longer read once its signal fires', async () => {
    const { checkpoint } = await checkpointOf({ files: [`${earlier}part-0`] })
    await expect(checkpoint.find(AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
  })

  test('is removed if there is any', async () => {
    const { checkpoint, asked, blobs } = await checkpointOf({ files: [`${earlier}part-0`] })
    await checkpoint.find(signal)
    await checkpoint.discard()
    expect(asked).toEqual(['list checkpoints/job/', 'delete checkpoints/job/'])
    expect(await keys(blobs, ['checkpoints/'])).toEqual([])
    const empty = await checkpointOf()
    await empty.checkpoint.find(signal)
    await empty.checkpoint.discard()
    expect(empty.asked).toEqual(['list checkpoints/job/'])
    empty.checkpoint.noteStepFiles()
    await empty.checkpoint.discard()
    expect(empty.asked[1]).toBe('delete checkpoints/job/')
    const stuck = await checkpointOf({ store: { deletePrefix: () => Promise.reject(new Error('stuck')) } })
    await stuck.checkpoint.discard()
    expect(stuck.lines).toEqual([{ level: 'warn', fields: { jobId: 'job', token: 3, err: new Error('stuck') } }])
  })
})

describe('what an attempt keeps', () => {
  test('continues after the parts of earlier ones and its downloads, and is no longer in the folder', async () => {
    const { checkpoint, blobs, stored } = await checkpointOf({ files: [0, 1, 2].map((n) => `${earlier}part-${n}`) })
    await checkpoint.find(signal)
    await writeFile(join(directory, 'song'), 'la la')
    checkpoint.noteDownload(0, { path: join(directory, 'song'), bytes: 5 })
    await writeFile(join(directory, 'checkpoint-1'), 'one')
    await checkpoint.of(directory).store(1)
    expect(stored).toHaveBeenCalledTimes(1)
    expect(await textOf(blobs, `${own}part-1`)).toBe('one')
    expect(await textOf(blobs, `${own}input-0`)).toBe('la la')
    await expect(readFile(join(directory, 'checkpoint-1'))).rejects.toThrow('ENOENT')
    const { parts } = (await checkpoint.order(directory, signal)) ?? { parts: [] }
    expect(parts.map(({ bytes: size }) => size)).toEqual([`${earlier}part-0`.length, 3])
    await blobs.delete(`${own}input-0`)
    await writeFile(join(directory, 'checkpoint-2'), 'two')
    await checkpoint.of(directory).store(2)
    expect(await keys(blobs, [own])).toEqual([`${own}part-1`, `${own}part-2`])
  })

  test('is moved into a store that accepts files', async () => {
    const putFile = vi.fn<NonNullable<BlobStore['putFile']>>(async () => ({ bytes: 4 }) as never)
    const { checkpoint, asked } = await checkpointOf({ job: { token: 1 }, store: { putFile } })
    await writeFile(join(directory, 'checkpoint-0'), 'zero')
    await checkpoint.of(directory, 'step').store(0)
    const key = 'checkpoints/job/1-n/work-step/part-0'
    expect(putFile.mock.calls).toEqual([[key, join(directory, 'checkpoint-0'), expect.anything()]])
    await checkpoint.discard()
    expect(asked).toEqual(['delete checkpoints/job/'])
  })

  test('can be only its downloads, if it may keep anything', async () => {
    await writeFile(join(directory, 'song'), 'la la')
    for (const settings of [{}, { checkpoints: { enabled: false } }]) {
      const { checkpoint, blobs, asked } = await checkpointOf({ job: { token: 1 }, settings })
      checkpoint.noteDownload(1, { path: join(directory, 'song'), bytes: 5 })
      await checkpoint.keepDownloads()
      const isOff = 'checkpoints' in settings
      expect(await keys(blobs, ['checkpoints/'])).toEqual(isOff ? [] : ['checkpoints/job/1-n/input-1'])
      await checkpoint.discard()
      expect(asked).toHaveLength(isOff ? 0 : 1)
    }
    const { checkpoint, lines } = await checkpointOf({ store: { put: () => Promise.reject(new Error('away')) } })
    checkpoint.noteDownload(1, { path: join(directory, 'song'), bytes: 5 })
    await checkpoint.keepDownloads()
    expect(lines.map(({ level }) => level)).toEqual(['warn'])
  })

  test('ends with the run, which waits for the part being stored and ignores its failure', async () => {
    await (await checkpointOf()).checkpoint.end()
    const { opened, open } = gate()
    const putFile = async () => {
      await opened
      throw new Error('away')
    }
    const { checkpoint, lines } = await checkpointOf({ store: { putFile } })
    await writeFile(join(directory, 'checkpoint-0'), 'zero')
    void checkpoint.of(directory).store(0)
    let isOver = false
    const ending = checkpoint.end().then(() => (isOver = true))
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(isOver).toBe(false)
    open()
    await ending
    expect(lines).toEqual([])
  })

  test('is complete for a hand-back once a part is stored that was begun after it', async () => {
    const { checkpoint } = await checkpointOf()
    const [run, step] = [checkpoint.of(directory), checkpoint.of(directory, 'step')]
    expect(step.handBack).toBe(run.handBack)
    for (const part of [0, 1]) await writeFile(join(directory, `checkpoint-${part}`), 'work')
    await run.store(0)
    let isOver = false
    void checkpoint.beforeHandBack(true).then(() => (isOver = true))
    expect([step.handBack?.aborted, isOver]).toEqual([true, false])
    await run.store(1)
    await new Promise((resolve) => setImmediate(resolve))
    expect(isOver).toBe(true)
    // No attempt has begun here, so it waits until the run ends.
    const other = (await checkpointOf({ files: [`${earlier}part-0`] })).checkpoint
    await other.find(signal)
    const waiting = other.beforeHandBack(false)
    await other.end()
    await waiting
  })

  describe('as time goes by', () => {
    beforeEach(stopTime)
    afterEach(resumeTime)
    const until = async (isSo: () => boolean) => {
      while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
    }

    test('is tried again after 1, 5 and then every 30 s, until the run ends; a link never', async () => {
      const times: number[] = []
      const startedAt = performance.now()
      const put = async () => {
        times.push(performance.now() - startedAt)
        throw new Error('away')
      }
      const { checkpoint, lines, stored } = await checkpointOf({ store: { put } })
      await writeFile(join(directory, 'checkpoint-0'), 'zero')
      const storing = checkpoint.of(directory).store(0)
      for (const [tries, ms] of [1000, 5000, 30_000, 30_000].entries()) {
        await until(() => lines.length === tries + 1)
        await vi.advanceTimersByTimeAsync(ms - 1)
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
        expect(lines).toHaveLength(tries + 1)
        await vi.advanceTimersByTimeAsync(1)
      }
      await until(() => lines.length === 5)
      expect(times).toEqual([0, 1000, 6000, 36_000, 66_000])
      const handedBack = checkpoint.beforeHandBack(false)
      await checkpoint.end()
      await Promise.all([storing, handedBack])
      expect(stored).not.toHaveBeenCalled()
      const linked = await checkpointOf()
      await symlink(join(directory, 'checkpoint-0'), join(directory, 'checkpoint-1'))
      void linked.checkpoint.of(directory).store(1)
      await until(() => linked.lines.length === 1)
      await linked.checkpoint.end()
      expect(await keys(linked.blobs, ['checkpoints/'])).toEqual([])
    })

    test('is not waited for once the run has ended', async () => {
      const { checkpoint } = await checkpointOf({ files: [`${earlier}part-0`] })
      await checkpoint.find(signal)
      await checkpoint.end()
      await checkpoint.beforeHandBack(true)
    })

    test.each([
      [true, 60_000, 5000],
      [false, 60_000, 10_000],
      [true, 9000, 3000],
      [false, 9000, 3000],
    ])('is waited for before a hand-back (shutdown: %s, lease of %i ms) for %i ms', async (isShutdown, leaseMs, ms) => {
      const files = [`${earlier}part-0`]
      const { checkpoint } = await checkpointOf({ files, settings: { dispatch: { leaseMs } } })
      await checkpoint.beforeHandBack(isShutdown)
      await checkpoint.find(signal)
      const { handBack } = checkpoint.of(directory)
      let isOver = false
      const waiting = checkpoint.beforeHandBack(isShutdown).then(() => (isOver = true))
      expect(handBack?.aborted).toBe(true)
      await vi.advanceTimersByTimeAsync(ms - 1)
      expect(isOver).toBe(false)
      await vi.advanceTimersByTimeAsync(1)
      await waiting
      const again = checkpoint.beforeHandBack(isShutdown)
      await checkpoint.end()
      await again
      await checkpoint.beforeHandBack(isShutdown)
    })
  })
})
