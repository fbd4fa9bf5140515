import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'

type Message = Record<string, unknown>

let directory: string
const children: ChildProcess[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'stemwork-killed-'))
})
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await rm(directory, { recursive: true })
})

describe('a SQLite store whose process is killed while it writes', () => {
  test('opens at once in the next process and has every acknowledged job', async () => {
    const path = join(directory, 'jobs.db')
    const created: unknown[] = []
    const succeeded: unknown[] = []
    for (const afterMessages of [20, 77, 150]) {
      const messages = await messagesUntilKilled('sqlite-writer.mjs', [path], afterMessages)
      created.push(...messages.flatMap((message) => message.created ?? []))
      succeeded.push(...messages.flatMap((message) => message.succeeded ?? []))

      const { jobs, close } = sqliteStores({ path, openTimeoutMs: 0 })
      try {
        for (const id of created)
          expect(await jobs.get(String(id)), `job ${String(id)} was acknowledged and is lost`).toBeDefined()
        for (const id of succeeded) expect((await jobs.get(String(id)))?.status).toBe('SUCCEEDED')
        const listed = await jobs.list({ limit: 100_000 })
        // In each run, one job may have been written but not yet acknowledged.
        expect(listed.length - created.length).toBeLessThanOrEqual(3)
        expect(await jobs.count({})).toBe(listed.length)
        expect(await jobs.count({ uploadKey: 'uploads/app-1/shared' })).toBe(listed.length)
      } finally {
        close()
      }
    }
  })

  test('has all jobs of a batch that was being created, each once', async () => {
    const path = join(directory, 'jobs.db')
    const messages = await messagesUntilKilled('sqlite-batch-writer.mjs', [path, '1000'], 3)
    expect(messages, 'the batch was whole before the process was killed').not.toContainEqual({ created: true })
    const { jobs, close } = sqliteStores({ path, openTimeoutMs: 0 })
    try {
      expect(await jobs.count({ app: 'a' })).toBe(1000)
      expect(await jobs.count({ app: 'a', statuses: ['STARTED'] })).toBeGreaterThanOrEqual(3)
    } finally {
      close()
    }
  })

  test('refuses a second process, with a helpful message, as long as the first lives', async () => {
    const path = join(directory, 'jobs.db')
    const first = start('sqlite-writer.mjs', [path])
    await messageWith(first, 'created')
    const second = start('sqlite-writer.mjs', [path])
    const { refused } = await messageWith(second, 'refused')
    expect(refused).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
      message: expect.stringMatching(/in use.*Only one process can use a SQLite store/s),
    })
    expect(() => sqliteStores({ path, openTimeoutMs: 0 })).toThrow(/in use/)
    await kill(first)
    sqliteStores({ path, openTimeoutMs: 0 }).close()
  })
})

describe('a blob folder whose process is killed while it writes', () => {
  test('has each blob whole, in a version not older than the last one acknowledged', async () => {
    const blobBytes = 3_000_001
    for (const afterMessages of [4, 8, 13]) {
      await rm(join(directory, 'blobs'), { recursive: true, force: true })
      const messages = await messagesUntilKilled(
        'blob-writer.mjs',
        [join(directory, 'blobs'), String(blobBytes)],
        afterMessages,
      )
      const store = fsBlobs({ directory: join(directory, 'blobs') })
      for (const name of ['a', 'b', 'c']) {
        const acknowledged = Math.max(
          0,
          ...messages.filter((message) => message.stored === name).map((message) => Number(message.version)),
        )
        const found = await store.get(`results/job/1/${name}`)
        expect(found !== undefined || acknowledged === 0, `blob ${name} was acknowledged and is lost`).toBe(true)
        if (!found) continue
        const versions = new Set<number>()
        let bytes = 0
        for await (const chunk of found.body) {
          bytes += chunk.byteLength
          for (let index = 0; index < chunk.byteLength; index += 1000) versions.add(chunk[index]!)
        }
        expect(bytes).toBe(blobBytes)
        expect(versions.size, 'a blob is mixed of two versions').toBe(1)
        expect([...versions][0]).toBeGreaterThanOrEqual(acknowledged)
      }
    }
  })

  test('is left with temporary files only, which are not blobs and which cleanUp removes', async () => {
    const blobs = join(directory, 'blobs')
    // Three blobs are stored; the next versions of all three are half-written.
    await messagesUntilKilled('blob-writer.mjs', [blobs, '1000000', '2'], 6)
    const store = fsBlobs({ directory: blobs })
    const files = await readdir(join(blobs, 'results', 'job', '1'))
    const temporary = files.filter((file) => file.startsWith('~'))
    expect(temporary.length).toBe(3)
    const listed: string[] = []
    for await (const { key, bytes } of store.list('results/')) {
      listed.push(key)
      expect(bytes).toBe(1_000_000)
    }
    expect(listed).toEqual(['a', 'b', 'c'].map((name) => `results/job/1/${name}`))
    expect(
      await store.cleanUp?.(Date.now() - 60 * 60 * 1000),
      'young ones may still be written by another process',
    ).toBe(0)
    expect(await store.cleanUp?.(Infinity)).toBe(temporary.length)
    expect((await readdir(join(blobs, 'results', 'job', '1'))).length).toBe(listed.length)
    await store.deletePrefix('results/job/')
    expect(await readdir(blobs)).toEqual([])
  })
})

function start(script: string, args: string[]): ChildProcess {
  const child = fork(fileURLToPath(new URL(`fixtures/${script}`, import.meta.url)), args, { execArgv: [] })
  children.push(child)
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

/** Starts the script, kills it after the given number of messages, and returns all that it sent. */
async function messagesUntilKilled(script: string, args: string[], afterMessages: number): Promise<Message[]> {
  const child = start(script, args)
  const messages: Message[] = []
  // Messages sent before the kill are still in the channel after the process has ended.
  const exit = Promise.all([once(child, 'exit'), once(child, 'disconnect')])
  child.on('message', (message: Message) => {
    messages.push(message)
    if (messages.length === afterMessages) child.kill('SIGKILL')
  })
  const [[, signal]] = (await exit) as [[number | null, string | null], unknown[]]
  expect(signal, 'the script ended before it was killed').toBe('SIGKILL')
  return messages
}

async function messageWith(child: ChildProcess, field: string): Promise<Message> {
  for (;;) {
    const [message] = (await once(child, 'message')) as [Message]
    if (field in message) return message
  }
}
