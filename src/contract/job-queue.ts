import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobQueue } from '../core/engine/ports/job-queue.js'
import { assertFails } from './broken-promise.js'
import { type Cases, type ContractApi, registerSuite, type Skips } from './suite.js'

export interface OpenJobQueue {
  queue: JobQueue
  /** Closes the queue and removes what it left. */
  close(): Promise<void>
}

export interface JobQueueHarness {
  /** An empty queue. Called once for each case. */
  open(): Promise<OpenJobQueue>
  skips?: Skips<JobQueueCase>
  /** Time limit of each case. Default: 30,000. */
  timeoutMs?: number
}

/**
 * Proves that a queue fulfils the `JobQueue` port, and that it notifies as long as nothing crashes. Runs in real time.
 */
export function jobQueueContract(api: ContractApi, harness: JobQueueHarness): void {
  registerSuite(api, 'the job queue contract', { notifying: queueCases }, harness)
}

export type JobQueueCase = keyof typeof queueCases

/** How long a case waits for a call before it counts as lost. */
const patienceMs = 20_000
/** Time in which a call that must not come would have come. */
const quietMs = 300

const queueCases = {
  async 'a notification calls the listener'({ queue }) {
    const calls = new Calls()
    const subscription = await queue.subscribe(calls.listener)
    for (let times = 1; times <= 3; times++) {
      const before = calls.count
      await queue.notify()
      await calls.reach(before + 1)
    }
    await subscription.stop()
  },

  async 'a notification sent before the subscription calls the listener'({ queue }) {
    const calls = new Calls()
    await queue.notify()
    const subscription = await queue.subscribe(calls.listener)
    await calls.reach(1)
    await subscription.stop()
  },

  async 'a notification during a call leads to another call that begins after it'({ queue }) {
    const gate = openGate()
    const calls = new Calls(() => gate.passed)
    const subscription = await queue.subscribe(calls.listener)
    await queue.notify()
    await calls.reach(1)
    await queue.notify()
    await sleep(quietMs)
    assert.equal(calls.count, 1, 'A listener is not called while its previous call is in progress.')
    gate.open()
    await calls.reach(2)
    await subscription.stop()
  },

  async 'after simultaneous notifications, a call begins after the last of them, and calls never overlap'({ queue }) {
    let sent = 0
    let seen = 0
    let running = 0
    let mostRunning = 0
    const calls = new Calls(async () => {
      mostRunning = Math.max(mostRunning, ++running)
      seen = sent
      await sleep(2)
      running--
    })
    const subscription = await queue.subscribe(calls.listener)
    await Promise.all(
      Array.from({ length: 200 }, () => {
        sent++
        return queue.notify()
      }),
    )
    await calls.until(() => seen === 200, 'call that began after the last of 200 notifications')
    await subscription.stop()
    assert.equal(mostRunning, 1, 'A listener is not called while its previous call is in progress.')
  },

  async 'if one listener is busy, a notification calls another'({ queue }) {
    const gate = openGate()
    const busy = new Calls(() => gate.passed)
    const first = await queue.subscribe(busy.listener)
    await queue.notify()
    await busy.reach(1)
    const idle = new Calls()
    const second = await queue.subscribe(idle.listener)
    await queue.notify()
    await idle.reach(1)
    gate.open()
    await first.stop()
    await second.stop()
  },

  async 'a listener that throws does not end the subscription'({ queue }) {
    let failures = 0
    const calls = new Calls(() => {
      if (++failures === 1) throw new Error('thrown by the listener')
      return failures === 2 ? Promise.reject(new Error('rejected by the listener')) : Promise.resolve()
    })
    const subscription = await queue.subscribe(calls.listener)
    for (let times = 1; times <= 3; times++) {
      await queue.notify()
      await calls.reach(times)
    }
    await subscription.stop()
  },

  async 'a delayed notification arrives after its delay and does not hold up others'({ queue }) {
    const calls = new Calls()
    const subscription = await queue.subscribe(calls.listener)
    // Node counts a timer from the start of the current pass of the event loop, which may have lasted long by now.
    await sleep(1)
    const start = performance.now()
    await queue.notify({ delayMs: 600 })
    await queue.notify()
    await calls.reach(1)
    // Timers may fire a little early. Calls without a notification may come in between.
    await calls.until(() => calls.count >= 2 && calls.lastAt - start >= 580, 'call about 600 ms after the notification')
    await subscription.stop()
  },

  async 'stop waits for the call in progress, and no call begins afterwards'({ queue }) {
    const gate = openGate()
    let finished = 0
    const calls = new Calls(async () => {
      await gate.passed
      finished++
    })
    const subscription = await queue.subscribe(calls.listener)
    await queue.notify()
    await calls.reach(1)
    let stopped = false
    const stopping = subscription.stop().then(() => (stopped = true))
    await sleep(quietMs)
    assert.equal(stopped, false, 'stop waits for the call in progress.')
    gate.open()
    await stopping
    assert.equal(finished, 1, 'The call that stop waited for is finished.')
    await queue.notify()
    await sleep(quietMs)
    assert.equal(calls.count, 1, 'A listener is not called after stop.')
  },

  async 'a notification that a stopped subscription did not handle calls the next subscription'({ queue }) {
    const first = new Calls()
    await (await queue.subscribe(first.listener)).stop()
    await queue.notify()
    const second = new Calls()
    const subscription = await queue.subscribe(second.listener)
    await second.reach(1)
    assert.equal(first.count, 0, 'A stopped subscription is not called again.')
    await subscription.stop()
  },

  async 'stopping twice or stopping an idle subscription does not fail'({ queue }) {
    const subscription = await queue.subscribe(async () => {})
    await subscription.stop()
    await subscription.stop()
  },

  async 'a working queue passes its check; a closed one refuses every call and may be closed again'({ queue }) {
    await queue.check()
    await queue.close()
    await queue.close()
    for (const call of [() => queue.check(), () => queue.notify(), () => queue.subscribe(async () => {})])
      await assertFails(call, 'SHUTTING_DOWN', 'A closed queue refuses every call with SHUTTING_DOWN.')
  },
} satisfies Cases<OpenJobQueue>

/** A listener that counts its calls. */
class Calls {
  count = 0
  /** By `performance.now()`. */
  lastAt = -Infinity
  readonly #respond: () => Promise<void>

  constructor(respond: () => Promise<void> = async () => {}) {
    this.#respond = respond
  }

  readonly listener = async (): Promise<void> => {
    this.count++
    this.lastAt = performance.now()
    await this.#respond()
  }

  reach(count: number): Promise<void> {
    return this.until(() => this.count >= count, `call ${count} of the listener`)
  }

  async until(isDone: () => boolean, expected: string): Promise<void> {
    const giveUpAt = performance.now() + patienceMs
    while (!isDone()) {
      if (performance.now() > giveUpAt)
        assert.fail(`Within ${patienceMs} ms there was no ${expected}. The calls so far: ${this.count}.`)
      await sleep(5)
    }
  }
}

function openGate(): { passed: Promise<void>; open(): void } {
  let open = () => {}
  const passed = new Promise<void>((resolve) => (open = resolve))
  return { passed, open: () => open() }
}
