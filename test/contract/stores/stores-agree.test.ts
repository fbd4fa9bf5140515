import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { Keyv } from 'keyv'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { postgresStores } from '../../../src/adapters/postgres.js'
import { keyvJobs } from '../../../src/adapters/stores/keyv/keyv-jobs.js'
import { sqliteStores } from '../../../src/adapters/stores/sqlite/index.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { pick, seededRandom } from '../../crash/random.js'
import { testEngine, textWorkflow } from '../../engine/harness.js'
import { describeWith } from '../../servers/found-server.js'
import { findPostgres } from '../../servers/postgres.js'
import { temporaryFolder } from '../../temporary-folder.js'
import { poolWithClock } from './postgres-clock.js'
import { nextOperation, type Operation, type Seen } from './random-operations.js'
import { settableClock } from './settable-clock.js'

/** The day is the seed; STEMWORK_STORES_SEED repeats the history that a failure names. */
const replayed = process.env.STEMWORK_STORES_SEED
const seed = replayed === undefined ? Math.floor(Date.now() / 86_400_000) * 1000 : Number(replayed)
const histories = replayed === undefined ? Number(process.env.STEMWORK_STORES_HISTORIES ?? 4) : 1
const operations = 250

const hour = 60 * 60 * 1000

const postgres = await findPostgres()
const folder = temporaryFolder()

describeWith('random operations', { postgres }, ({ postgres: server }) => {
  afterAll(() => server.release())

  test.each(Array.from({ length: histories }, (_, n) => seed + n))(
    'have the same answers in all stores (STEMWORK_STORES_SEED=%i)',
    async (each) => {
      const random = seededRandom(each)
      const { stores, now, advance } = await open()
      const seen: Seen = { random, now, ids: [], jobs: new Map(), count: 0 }
      for (let done = 0; done < operations; done++) {
        await advance(1000 * pick(random, [1, 1, 2, 5, 20]))
        seen.count = done
        const operation = nextOperation(seen)
        if (!operation) continue
        const answers = await answersOf(stores, operation)
        for (const [name, answer] of Object.entries(answers))
          expect({ operation: done, words: operation.words, name, answer }).toEqual({
            operation: done,
            words: operation.words,
            name,
            answer: answers.memory,
          })
        note(seen, answers.memory)
      }
    },
    120_000,
  )

  test('the next sweep frees jobs that were created while the clock was ahead, and they keep their order', async () => {
    const { stores, now, advance } = await open(Date.now() + hour)
    const notBefore = now() + hour
    for (const [name, jobs] of Object.entries(stores)) {
      const { engine } = testEngine(textWorkflow(), {}, { jobs })
      const submitted: string[] = []
      const submit = async (more: { notBefore?: number } = {}) => {
        submitted.push((await engine.submit({ app: 'app', workflow: 'test/text', ...more })).job.id)
        await advance(10)
      }
      for (let count = 0; count < 12; count++) await submit()
      await advance(-hour)
      await submit({ notBefore })
      const claimed = async () => (await jobs.claim({ owner: 'worker', leaseMs: 1000 }))?.id
      // Not before, so that the sweep is what frees them.
      expect([name, await claimed()]).toEqual([name, undefined])
      await engine.sweep()
      await engine.sweep()
      const found: unknown[] = []
      for (let id = await claimed(); id !== undefined; id = await claimed()) found.push(id)
      expect([name, ...found]).toEqual([name, ...submitted.slice(0, 12)])
      await advance(hour)
      await engine.close()
    }
  })

  test('a pass over the files begins although the last one began before the clock was set back', async () => {
    const { stores, advance } = await open()
    const begun = async () =>
      Promise.all(Object.values(stores).map(async (jobs) => (await jobs.beginFilePass(60_000))?.pass))
    const once = await begun()
    await advance(10_000)
    expect(await begun()).toEqual([undefined, undefined, undefined, undefined])
    await advance(-hour)
    expect(await begun()).toEqual(once.map((pass) => (pass ?? NaN) + 1))
    expect(await begun()).toEqual([undefined, undefined, undefined, undefined])
  })

  /** Empty stores, whose clocks advance together. */
  async function open(start = Date.UTC(2026, 0, 31, 23, 59)) {
    const { clock, advance } = settableClock(start)
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const database = await poolWithClock(server.url, schema, start)
    await postgresStores({ pool: database.pool, schema }).migrate()
    const sqlite = sqliteStores({ path: join(folder, `${schema}.db`), clock })
    onTestFinished(async () => {
      sqlite.close()
      await database.end()
    })
    return {
      now: clock,
      stores: {
        memory: memoryJobs({ clock }),
        sqlite: sqlite.jobs,
        keyv: keyvJobs({ keyv: new Keyv(), clock }),
        postgres: postgresStores({ pool: database.pool, schema }).jobs,
      },
      async advance(milliseconds: number) {
        advance(milliseconds)
        await database.advance(milliseconds)
      },
    }
  }
})

type Stores = Record<'memory' | 'sqlite' | 'keyv' | 'postgres', JobStore>

async function answersOf(stores: Stores, operation: Operation) {
  const answers: Record<string, unknown> = { memory: await answerOf(stores.memory, operation) }
  const [what, request] = operation.words as [string, Parameters<JobStore['claim']>[0]]
  const claimed = what === 'claim' ? (answers.memory as JobRecord | undefined) : undefined
  // Each store decides when it forgets the turn of an idle application. Whether there is a job, and which job of an
  // application is next, is the same.
  const same: Operation = claimed
    ? { ...operation, run: (store) => store.claim({ ...request, onlyApps: [claimed.app] }) }
    : operation
  for (const [name, store] of Object.entries(stores).slice(1)) answers[name] = await answerOf(store, same)
  return answers
}

async function answerOf(store: JobStore, { run, isUnordered }: Operation): Promise<unknown> {
  try {
    const answer = await run(store)
    return isUnordered ? (answer as JobRecord[]).toSorted((a, b) => (a.id < b.id ? -1 : 1)) : answer
  } catch (error) {
    if (!StemworkError.is(error) || error.code === 'STORE_UNAVAILABLE') throw error
    // Of several reasons, each store reports the first that it finds.
    return 'refused'
  }
}

/** Later operations change what this answer shows. */
function note({ jobs }: Seen, answer: unknown): void {
  for (const each of [answer].flat()) {
    const found = (each as { job?: JobRecord } | undefined)?.job ?? (each as JobRecord | undefined)
    if (found && typeof found === 'object' && 'deliveries' in found) jobs.set(found.id, found)
  }
}
