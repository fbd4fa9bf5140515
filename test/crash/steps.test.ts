import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import { seededRandom } from './random.js'

/** `STEMWORK_KILLS=200 npx vitest run test/crash/steps.test.ts` is the long run, which takes some minutes. */
const kills = Number(process.env.STEMWORK_KILLS ?? 4)
const script = fileURLToPath(new URL('fixtures/steps-worker.mjs', import.meta.url))

let folder: string
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'stemwork-steps-'))))
afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))

/** The stored job while no worker runs. */
async function stored(): Promise<JobRecord | undefined> {
  const { jobs, close } = sqliteStores({ path: join(folder, 'jobs.db') })
  try {
    return (await jobs.list({ limit: 1 }))[0]
  } finally {
    close()
  }
}

/** The steps that were begun, each with its worker. */
async function begun(): Promise<{ name: string; worker: number }[]> {
  const lines = (await readFile(join(folder, 'notes.txt'), 'utf8').catch(() => '')).split('\n').filter(Boolean)
  return lines.map((line) => {
    const [name = '', worker] = line.split(' ')
    return { name, worker: Number(worker) }
  })
}

/** Runs a worker; kills it after a while, unless it ends before. Resolves with its pid and its last output. */
async function work(killAfterMs?: number, ...args: string[]): Promise<{ pid: number | undefined; text: string }> {
  const worker = spawn(process.execPath, [script, folder, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  worker.stdout.setEncoding('utf8').on('data', (text: string) => void (printed += text))
  const exit = once(worker, 'exit')
  await Promise.race([once(worker.stdout, 'data'), exit])
  if (killAfterMs !== undefined) {
    await Promise.race([delay(killAfterMs), exit])
    worker.kill('SIGKILL')
  }
  await exit
  return { pid: worker.pid, text: printed.replace('working\n', '') }
}

test(
  'after kill -9 at random points no finished step runs again, none is lost, and the bytes are the same',
  { timeout: 60_000 + kills * 10_000 },
  async () => {
    const random = seededRandom(35)
    let [killed, printed] = [0, '']
    while (killed < kills || printed === '') {
      if (printed !== '') {
        // The job has ended before all the kills, so the next job begins.
        await rm(folder, { recursive: true, force: true, maxRetries: 5 })
        folder = await mkdtemp(join(tmpdir(), 'stemwork-steps-'))
      }
      const before = (await begun()).length
      const job = before === 0 ? undefined : await stored()
      const done = job?.steps.filter(({ state }) => state === 'done').map(({ name }) => name) ?? []
      const isKilled = killed < kills
      const { pid, text } = await work(isKilled ? 600 * random() : undefined)
      printed = text
      if (!isKilled && printed === '') throw new Error('The worker ended without its job.')
      if (printed === '') killed++
      const again = (await begun()).slice(before)
      expect(again.filter(({ name }) => done.includes(name))).toEqual([])
      // Steps run in order, and none is skipped. The child process of the previous worker may have begun one more.
      const own = again.filter(({ worker }) => worker === pid).map(({ name }) => name)
      expect(own).toEqual(own.map((_, index) => `step-${done.length + 1 + index}`))
    }
    const { status, key } = JSON.parse(printed) as { status: string; key: string }
    expect(status).toBe('SUCCEEDED')
    const chunks: Uint8Array[] = []
    const blobs = fsBlobs({ directory: join(folder, 'blobs') })
    for await (const chunk of (await blobs.get(key))?.body ?? []) chunks.push(chunk)
    const expected = Array.from({ length: 10 }, (_, index) => `line ${index + 1}\n`).join('')
    expect(Buffer.concat(chunks).toString()).toBe(expected)
    // The last worker may have been killed before it removed its kept files.
    await work(undefined, 'sweep')
    const left: string[] = []
    for await (const { key: blob } of blobs.list('checkpoints/')) left.push(blob)
    expect(left).toEqual([])
  },
)
