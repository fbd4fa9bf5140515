import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobQueue, JobReference } from '../core/engine/ports/job-queue.js'
import { type Cases, type ContractApi, registerSuite, type Skips } from './suite.js'

export interface OpenJobQueue {
  queue: JobQueue
  /** Closes the queue and removes what it left. */
  close(): Promise<void>
}

export interface JobQueueHarness {
  /** An empty queue. Called once a case. */
  open(): Promise<OpenJobQueue>
  skips?: Skips<JobQueueCase>
}

/** Proves that a queue keeps the `JobQueue` port, and that it delivers as long as nothing crashes. Runs in real time. */
export function jobQueueContract(api: ContractApi, harness: JobQueueHarness): void {
  registerSuite(api, {
    title: 'the job queue contract',
    groups: { delivering: queueCases },
    skips: harness.skips ?? {},
    open: () => harness.open(),
  })
}

export type JobQueueCase = keyof typeof queueCases

/** How long a case waits for a delivery before it calls it lost. */
const patienceMs = 20_000
/** Long enough that a delivery which must not come would have come. */
const quietMs = 300

const queueCases = {
  async 'every reference is delivered, with its application'({ queue }) {
    const heard = new Heard()
    const sent = Array.from({ length: 200 }, (_, n) => ({ id: `job-${n}`, app: `app-${n % 3}` }))
    const subscription = await queue.subscribe(heard.handler, { concurrency: 8 })
    await Promise.all(sent.map((reference) => queue.publish(reference)))
    await heard.all(sent.map(({ id }) => id))
    for (const { id, app } of sent) assert.equal(heard.references.find((reference) => reference.id === id)?.app, app)
    await subscription.stop()
  },

  async 'references that were published before the subscription are delivered'({ queue }) {
    const heard = new Heard()
    for (const id of ['a', 'b', 'c']) await queue.publish({ id, app: 'app' })
    const subscription = await queue.subscribe(heard.handler, { concurrency: 1 })
    await heard.all(['a', 'b', 'c'])
    await subscription.stop()
  },

  async 'a reference that is published again after its delivery is delivered again'({ queue }) {
    const heard = new Heard()
    const subscription = await queue.subscribe(heard.handler, { concurrency: 1 })
    for (let times = 1; times <= 3; times++) {
      await queue.publish({ id: 'again', app: 'app' })
      await heard.until(() => heard.ids.length >= times)
    }
    await subscription.stop()
  },

  async 'a reference that is published again while it is handled is delivered again'({ queue }) {
    const gate = openGate()
    const heard = new Heard(() => gate.passed)
    const subscription = await queue.subscribe(heard.handler, { concurrency: 1 })
    await queue.publish({ id: 'again', app: 'app' })
    await heard.until(() => heard.ids.length === 1)
    await queue.publish({ id: 'again', app: 'app' })
    gate.open()
    await heard.until(() => heard.ids.length >= 2)
    await subscription.stop()
  },

  async 'as many handlers run at once as asked for, and no more'({ queue }) {
    let running = 0
    let most = 0
    const heard = new Heard(async () => {
      most = Math.max(most, ++running)
      await sleep(20)
      running--
    })
    const ids = Array.from({ length: 40 }, (_, n) => `job-${n}`)
    const subscription = await queue.subscribe(heard.handler, { concurrency: 4 })
    await Promise.all(ids.map((id) => queue.publish({ id, app: 'app' })))
    await heard.all(ids)
    await subscription.stop()
    assert.equal(most, 4)
  },

  async 'a handler that throws does not stop the queue'({ queue }) {
    const heard = new Heard(({ id }) => {
      if (id === 'throws') throw new Error('thrown by the handler')
      return id === 'rejects' ? Promise.reject(new Error('rejected by the handler')) : Promise.resolve()
    })
    const subscription = await queue.subscribe(heard.handler, { concurrency: 1 })
    for (const id of ['throws', 'rejects', 'works']) await queue.publish({ id, app: 'app' })
    await heard.all(['throws', 'rejects', 'works'])
    await queue.publish({ id: 'later', app: 'app' })
    await heard.all(['later'])
    await subscription.stop()
  },

  async 'a delayed reference comes after its delay and does not hold others up'({ queue }) {
    const heard = new Heard()
    const subscription = await queue.subscribe(heard.handler, { concurrency: 1 })
    const start = performance.now()
    await queue.publish({ id: 'late', app: 'app' }, { delayMs: 400 })
    await queue.publish({ id: 'soon', app: 'app' })
    await heard.all(['soon', 'late'])
    const elapsedMs = performance.now() - start
    assert.deepEqual(heard.ids.slice(0, 2), ['soon', 'late'])
    // Timers may fire a little early.
    assert.ok(elapsedMs >= 380, `came after ${elapsedMs} ms instead of 400`)
    await subscription.stop()
  },

  async 'stop waits for the handlers that run, and takes no further reference'({ queue }) {
    const gate = openGate()
    let finished = 0
    const heard = new Heard(async () => {
      await gate.passed
      finished++
    })
    const subscription = await queue.subscribe(heard.handler, { concurrency: 2 })
    for (const id of ['a', 'b', 'c', 'd']) await queue.publish({ id, app: 'app' })
    await heard.until(() => heard.ids.length === 2)
    let stopped = false
    const stopping = subscription.stop().then(() => (stopped = true))
    await sleep(quietMs)
    assert.equal(stopped, false, 'stop did not wait for the running handlers')
    gate.open()
    await stopping
    assert.equal(finished, 2)
    await queue.publish({ id: 'e', app: 'app' })
    await sleep(quietMs)
    assert.equal(heard.ids.length, 2, 'a reference was delivered after stop')
  },

  async 'what a stopped subscription left is delivered to the next'({ queue }) {
    const first = new Heard()
    await (await queue.subscribe(first.handler, { concurrency: 1 })).stop()
    await queue.publish({ id: 'left', app: 'app' })
    const second = new Heard()
    const subscription = await queue.subscribe(second.handler, { concurrency: 1 })
    await second.all(['left'])
    assert.deepEqual(first.ids, [])
    await subscription.stop()
  },

  async 'stopping twice and stopping an idle subscription is no error'({ queue }) {
    const subscription = await queue.subscribe(async () => {}, { concurrency: 3 })
    await subscription.stop()
    await subscription.stop()
  },

  async 'an application with a hundred jobs does not keep the single job of another waiting'({ queue }) {
    for (let n = 0; n < 100; n++) await queue.publish({ id: `busy-${n}`, app: 'busy' })
    await queue.publish({ id: 'single', app: 'quiet' })
    const heard = new Heard()
    const subscription = await queue.subscribe(heard.handler, { concurrency: 1 })
    await heard.all(['single'])
    const place = heard.ids.indexOf('single')
    assert.ok(place <= 5, `the single job was served after ${place} others`)
    await subscription.stop()
  },

  async 'jobs of one application are served in the order of their publishing'({ queue }) {
    const ids = Array.from({ length: 30 }, (_, n) => `job-${n}`)
    for (const id of ids) await queue.publish({ id, app: 'app' })
    const heard = new Heard()
    const subscription = await queue.subscribe(heard.handler, { concurrency: 1 })
    await heard.all(ids)
    assert.deepEqual(heard.ids, ids)
    await subscription.stop()
  },

  async 'depth counts what waits, delayed references included, and not what is handled'({ queue }) {
    assert.equal(await queue.depth(), 0)
    for (const id of ['a', 'b']) await queue.publish({ id, app: 'app' })
    await queue.publish({ id: 'late', app: 'app' }, { delayMs: 60_000 })
    assert.equal(await queue.depth(), 3)
    const gate = openGate()
    const heard = new Heard(() => gate.passed)
    const subscription = await queue.subscribe(heard.handler, { concurrency: 2 })
    await heard.all(['a', 'b'])
    assert.equal(await queue.depth(), 1)
    gate.open()
    await subscription.stop()
  },

  async 'ids and applications may hold any character'({ queue }) {
    const heard = new Heard()
    const references = [
      { id: 'a:b', app: 'x:y' },
      { id: 'ü 🎵 "\'{}', app: '' },
      { id: '1', app: '2' },
      { id: '..', app: '__proto__' },
    ]
    const subscription = await queue.subscribe(heard.handler, { concurrency: 1 })
    for (const reference of references) await queue.publish(reference)
    await heard.all(references.map(({ id }) => id))
    assert.deepEqual(
      [...heard.references].sort((a, b) => (a.id < b.id ? -1 : 1)),
      references.sort((a, b) => (a.id < b.id ? -1 : 1)),
    )
    await subscription.stop()
  },
} satisfies Cases<OpenJobQueue>

/** A handler that remembers what it was given. */
class Heard {
  readonly references: JobReference[] = []
  readonly #respond: (reference: JobReference) => Promise<void>
  #notify = () => {}

  constructor(respond: (reference: JobReference) => Promise<void> = async () => {}) {
    this.#respond = respond
  }

  get ids(): string[] {
    return this.references.map(({ id }) => id)
  }

  readonly handler = (reference: JobReference): Promise<void> => {
    this.references.push({ id: reference.id, app: reference.app })
    this.#notify()
    return this.#respond(reference)
  }

  /** Resolves when `isEnough` holds; it is asked at each delivery. */
  async until(isEnough: () => boolean): Promise<void> {
    const patience = new AbortController()
    const tooLate = sleep(patienceMs, undefined, { signal: patience.signal }).then(() => {
      throw new Error(`After ${patienceMs} ms only these were delivered: ${this.ids.join(', ') || 'none'}`)
    })
    tooLate.catch(() => {})
    try {
      while (!isEnough()) await Promise.race([new Promise<void>((resolve) => (this.#notify = resolve)), tooLate])
    } finally {
      patience.abort()
    }
  }

  all(ids: readonly string[]): Promise<void> {
    return this.until(() => {
      const heard = new Set(this.ids)
      return ids.every((id) => heard.has(id))
    })
  }
}

function openGate(): { passed: Promise<void>; open(): void } {
  let open = () => {}
  const passed = new Promise<void>((resolve) => (open = resolve))
  return { passed, open: () => open() }
}
