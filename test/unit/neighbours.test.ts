import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { changesOf, readsOf } from '../../src/adapters/blobs/fs/disk-turns.js'
import { connectionShares } from '../../src/adapters/stores/postgres/postgres-jobs.js'
import { memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import { Stages } from '../../src/core/engine/dispatch/attempt/stages.js'
import type { AudioPeaks } from '../../src/core/engine/ports/audio-peaks.js'
import { resultPeaks } from '../../src/core/engine/queries/result-peaks.js'
import { Lanes } from '../../src/core/engine/webhooks/lanes.js'
import { transferSlots } from '../../src/http/routing/transfer-slots.js'
import { QueryTurns } from '../../src/http/routing/query-turns.js'
import { type EndTurn, LoopTurns } from '../../src/http/routing/loop-turns.js'

// Fifty applications that request as much as possible of everything at once, and one that makes a request now and then.
// The number of units that others get before it is counted; no clock decides.
const hostile = Array.from({ length: 50 }, (_, n) => `hostile-${n}`)
const other = 'other'
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Work that lasts until `resolve` is called. */
function held() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve: () => resolve() }
}

/** A scarce resource: each call waits for its turn, does a little work and ends. */
interface Lane {
  name: string
  /** Units in use at a time. */
  atOnce: number
  use(app: string): Promise<unknown>
  /** Resolves when the occasional application holds no unit any more. */
  isFree?(): Promise<unknown>
}

function lanes(): Lane[] {
  const [queries, turns] = [new QueryTurns(), new LoopTurns()]
  const { peaks, peaksOf } = measuring()
  const connections = connectionShares({ options: { max: 4 } })
  const ofNewJob = () => `results/${randomUUID()}/x`
  let slice: Promise<unknown> = Promise.resolve()
  return [
    { name: 'changes of files', atOnce: 3, use: (app) => changesOf(ofNewJob(), app)(settled) },
    { name: 'reads of files', atOnce: 2, use: (app) => readsOf(ofNewJob(), app)(settled) },
    { name: 'connections of Postgres', atOnce: 2, use: (app) => connections.use(app, settled) },
    {
      name: 'slices of lists and bulk changes',
      atOnce: 3,
      // Until its work is done: the rest period after it follows the clock, and others pass meanwhile.
      use: async (app) => {
        const { promise, resolve } = held()
        const whole = queries.slice(app, async () => {
          await settled()
          resolve()
        })
        if (app === other) slice = whole
        await promise
      },
      isFree: () => slice,
    },
    { name: 'requests, and chunks and frames that are sent', atOnce: 2, use: async (app) => turns.next(app) },
    { name: 'peaks', atOnce: 2, use: (app) => peaks(peaksOf(app), 'x').catch(() => delay(1)) },
  ]
}

/** Peaks of a new file each time, whose measurement takes a pass of the event loop. */
function measuring() {
  const blobs = memoryBlobs()
  const measure: AudioPeaks = async () => {
    await settled()
    return '{}'
  }
  let files = 0
  const peaksOf = (app: string) => {
    const key = `results/${app}/${files++}`
    void blobs.put(key, 'sound')
    const output = { key, fileName: 'x.wav', contentType: 'audio/wav', bytes: 5, copied: false }
    return sampleJob({ app, status: 'SUCCEEDED', outputs: { x: output } })
  }
  return { peaks: resultPeaks(blobs, measure), peaksOf }
}

test('fifty applications that storm on every lane let another pass after what is in progress', async () => {
  let isOver = false
  const all = lanes()
  const served = new Map(all.map(({ name }) => [name, 0]))
  /** Makes requests continuously, several at a time. */
  const storm = ({ name, use }: Lane, app: string) =>
    Array.from({ length: 4 }, async () => {
      while (!isOver) {
        await use(app)
        served.set(name, (served.get(name) ?? 0) + 1)
      }
    })
  const storms = all.flatMap((lane) => hostile.flatMap((app) => storm(lane, app)))
  const passed = new Map<string, number[]>(all.map(({ name }) => [name, []]))
  await Promise.all(
    all.map(async ({ name, use, isFree }) => {
      // Until the shares of the busiest applications are known.
      await vi.waitFor(() => expect(served.get(name)).toBeGreaterThan(10 * hostile.length), { timeout: 20_000 })
      for (let n = 0; n < 5; n++) {
        await isFree?.()
        const before = served.get(name) ?? 0
        await use(other)
        passed.get(name)?.push((served.get(name) ?? 0) - before)
      }
    }),
  )
  isOver = true
  await Promise.all(storms)
  for (const { name, atOnce } of all) {
    const worst = Math.max(...(passed.get(name) ?? [Infinity]))
    // Units under way, and those that end beside them; strict turns would give one to each of the fifty.
    expect(worst, `${name}: units of others before one of it`).toBeLessThanOrEqual(4 * atOnce)
  }
})

describe('while fifty applications hold everything for a long time', () => {
  test('another gets a slot for a slow input, and keeps it', async () => {
    const stages = new Stages(
      { concurrency: 1, slowInputs: 64, slowInputsPerApplication: 4 },
      () => {},
      () => {},
    )
    const crowded = vi.fn()
    const stop = held()
    const fetches = hostile.flatMap((app) =>
      Array.from({ length: 4 }, () => stages.fetch({ app, work: () => stop.promise, onCrowded: crowded })),
    )
    await vi.waitFor(() => expect(crowded).toHaveBeenCalled())
    const onCrowded = vi.fn()
    const own = stages.fetch({ app: 'other', work: () => stop.promise, onCrowded })
    await vi.waitFor(() => expect(stages.slowApplications).not.toContain('other'))
    stop.resolve()
    await Promise.all([own, ...fetches])
    expect(onCrowded).not.toHaveBeenCalled()
  })

  test('another has a webhook lane soon, and a download at once', async () => {
    const lanes = new Lanes({ concurrency: 50, slowReceivers: 200, concurrencyPerApplication: 5 })
    const stop = held()
    const requests = hostile.flatMap((app) => Array.from({ length: 5 }, () => lanes.run(app, () => stop.promise)))
    const downloads = transferSlots('files', { total: 250, perApplication: 50 })
    let lost = 0
    for (const app of hostile.flatMap((one) => Array<string>(5).fill(one))) {
      try {
        downloads.take(app).lost.addEventListener('abort', () => lost++)
      } catch {
        // Refused: the application has used its whole share.
      }
    }
    // A call that is not answered soon leaves its lane.
    await vi.waitFor(() => expect(lanes.hasRoom('other')).toBe(true))
    expect(await lanes.run('other', async () => 'sent')).toBe('sent')
    expect(downloads.take('other').lost.aborted).toBe(false)
    stop.resolve()
    await Promise.all(requests)
    // Taken from an application that had several, if from any.
    expect(lost).toBeLessThanOrEqual(1)
  })

  test.each([
    ['changes', changesOf],
    ['reads', readsOf],
  ])('another %s a file at once, while a slow disk blocks all of their calls', async (_, turnOf) => {
    const some = hostile.slice(0, 5)
    // The busiest applications are known now.
    for (const app of some) for (let n = 0; n < 100; n++) await turnOf('', app)(async () => {})
    const stop = held()
    const blocked = some.flatMap((app) => Array.from({ length: 4 }, () => turnOf('', app)(() => stop.promise)))
    await settled()
    const done = vi.fn()
    const own = turnOf('', 'other')(async () => done())
    await settled()
    expect(done).toHaveBeenCalledOnce()
    stop.resolve()
    await Promise.all([own, ...blocked])
  })

  test('a job of another is the next to be claimed', async () => {
    const jobs = memoryJobs()
    for (const app of hostile) for (let n = 0; n < 20; n++) await jobs.create(sampleJob({ app }))
    const claim = () => jobs.claim({ owner: 'worker', leaseMs: 60_000 })
    for (let n = 0; n < 4 * hostile.length; n++) await claim()
    const own = await jobs.create(sampleJob({ app: 'other' }))
    expect((await claim())?.id).toBe(own.job.id)
  })
})

describe('requests that come at the same time', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  /** How many of twenty begin in each pass of the event loop. @param work synchronous part of each */
  async function perPass(work: (endTurn: (tookMs: number) => void) => void): Promise<number[]> {
    const turns = new LoopTurns()
    let begun = 0
    const request = async (app: string) => {
      const endTurn = await turns.next(app)
      begun++
      work(endTurn)
    }
    for (let n = 0; n < 20; n++) void request(`app-${n % 4}`)
    const passes: number[] = []
    for (let before = 0; before < 20; before = begun) {
      await settled()
      passes.push(begun - before)
    }
    return passes
  }

  /** Two begin at once, and two at the end of the same pass. */
  const twoInEach = [4, ...Array.from({ length: 8 }, () => 2)]

  test('begin two in a pass of the event loop while none is done', async () => {
    expect(await perPass(() => {})).toEqual(twoInEach)
  })

  test('begin all in one pass if each is done at once', async () => {
    const passes = await perPass((endTurn) => endTurn(0))
    expect(passes[0]).toBeGreaterThan(4)
  })

  test('begin two in a pass again if each holds the event loop for long', async () => {
    const passes = await perPass((endTurn) => {
      vi.advanceTimersByTime(2)
      endTurn(2)
    })
    expect(passes).toEqual(twoInEach)
  })

  test('begin sooner if those of the application are short than if it asks as often for more', async () => {
    const turns = new LoopTurns()
    for (let n = 0; n < 20; n++) {
      const [long, short] = [await turns.next('long'), await turns.next('short')]
      // While one long call runs, the time passes in which others may begin.
      vi.advanceTimersByTime(2)
      long(2)
      short(0.1)
      await settled()
    }
    const order: string[] = []
    const request = async (app: string) => {
      await turns.next(app)
      order.push(app)
    }
    for (const app of ['first', 'second', 'long', 'short']) void request(app)
    await settled()
    await settled()
    expect(order).toEqual(['first', 'second', 'short', 'long'])
  })

  describe('while passes are long', () => {
    /** Blocks the event loop for too long in each pass. */
    const longPasses = async (count: number) => {
      for (let n = 0; n < count; n++) {
        vi.advanceTimersByTime(3)
        await settled()
      }
    }

    /** One application makes requests continuously; they last until they are ended. */
    async function asking(turns: LoopTurns, app: string) {
      const endTurns: EndTurn[] = []
      for (let n = 0; n < 20; n++) void Promise.resolve(turns.next(app)).then((endTurn) => endTurns.push(endTurn))
      await longPasses(1)
      return endTurns
    }

    test('one that asks more than another waits until its earlier ones are done', async () => {
      const turns = new LoopTurns()
      const endOther = await turns.next('another')
      endOther()
      const often = await asking(turns, 'often')
      const begun = often.length
      await longPasses(10)
      expect(often).toHaveLength(begun)
      for (const endTurn of often.slice()) endTurn()
      await longPasses(2)
      expect(often.length).toBeGreaterThan(begun)
    })

    test('it also waits until those of the other are done', async () => {
      const turns = new LoopTurns()
      const endOther = await turns.next('another')
      const often = await asking(turns, 'often')
      for (const endTurn of often) endTurn()
      await longPasses(1)
      const begun = often.length
      await longPasses(10)
      expect(often).toHaveLength(begun)
      endOther()
      await longPasses(1)
      expect(often.length).toBeGreaterThan(begun)
    })

    test('it begins something every 50 ms, although the other never pauses', async () => {
      const turns = new LoopTurns()
      const often = await asking(turns, 'often')
      for (let n = 0; n < 100; n++) {
        void turns.next(`another ${n}`)
        for (const endTurn of often) endTurn()
        await longPasses(1)
      }
      expect(often.length).toBeGreaterThan(5)
      expect(often.length).toBeLessThan(12)
    })

    test('the other begins at once', async () => {
      const turns = new LoopTurns()
      await turns.next('another')
      await asking(turns, 'often')
      await longPasses(1)
      let hasBegun = false
      void Promise.resolve(turns.next('another')).then(() => (hasBegun = true))
      await longPasses(1)
      expect(hasBegun).toBe(true)
    })

    test('one alone does not wait', async () => {
      const alone = await asking(new LoopTurns(), 'alone')
      await longPasses(20)
      expect(alone).toHaveLength(20)
    })
  })
})
