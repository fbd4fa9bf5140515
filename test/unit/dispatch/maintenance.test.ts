import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { engineMaintenance } from '../../../src/core/engine/dispatch/maintenance.js'
import { gate, recordingLogger } from '../../engine/harness.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

let swept = { deleted: 1, expired: 2, missed: 3, purged: 4 }
const sweptFiles = { uploads: 5, orphans: 6 }

/** Maintenance every second, of parts that only record their calls. */
function maintained(clock: { wrongBy: () => Promise<number | undefined> } = { wrongBy: async () => undefined }) {
  const calls: unknown[] = []
  const note = (...call: unknown[]) => void calls.push(call.length === 1 ? call[0] : call)
  const fleet = { workers: 0 }
  const work = { sweep: async () => {}, files: async () => {}, outbox: async () => 3 }
  const { logger, lines } = recordingLogger()
  const turn = { isOurs: true, workers: 1 }
  /** Answers to the next requests for the turn, if they are delayed. */
  const later: { turn?: Promise<typeof turn>; asked: number } = { asked: 0 }
  const maintenance = engineMaintenance({
    takeSweepTurn: async () => {
      if (later.turn) later.asked++
      return await (later.turn ?? turn)
    },
    workers: { setFleet: (workers: number) => void (fleet.workers = workers) },
    sweep: { run: async () => (note('sweep'), await work.sweep(), swept) },
    fileSweep: {
      run: async (options: object) => (note('files', options), await work.files(), sweptFiles),
      stop: () => note('stop'),
    },
    dispatcher: { wake: () => note('wake') },
    outbox: { send: async () => (note('send'), await work.outbox()) },
    batches: { tend: async () => (note('tend'), 4) },
    clock,
    options: { dispatch: { sweepIntervalMs: 1000 } },
    logger,
  } as unknown as Parameters<typeof engineMaintenance>[0])
  const taken = () => calls.splice(0)
  return { maintenance, taken, work, lines, turn, later, fleet }
}

const round = ['wake', 'send', 'tend', 'sweep']
const files = ['files', { everyMs: 10_000 }]
const begun = [...round, files]

test('begins at once, and sweeps at each interval, all files at each twentieth', async () => {
  const { maintenance, taken } = maintained()
  expect(maintenance.isStarted).toBe(false)
  maintenance.start()
  expect(maintenance.isStarted).toBe(true)
  await vi.advanceTimersByTimeAsync(0)
  expect(taken()).toEqual(begun)
  await vi.advanceTimersByTimeAsync(999)
  expect(taken()).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(taken()).toEqual(round)
  await vi.advanceTimersByTimeAsync(18_999)
  expect(taken()).toEqual(Array.from({ length: 18 }, () => round).flat())
  await vi.advanceTimersByTimeAsync(1)
  expect(taken()).toEqual(expect.arrayContaining([...round, files]))
  maintenance.stop()
  expect(taken()).toEqual(['stop'])
  await vi.advanceTimersByTimeAsync(40_000)
  expect(taken()).toEqual([])
})

test.each(['deleted', 'expired', 'purged'])(
  'sweeps again at once while as many jobs as it can were %s',
  async (reason) => {
    const { maintenance, taken, work } = maintained()
    const few = swept
    onTestFinished(() => void (swept = few))
    let sweeps = 0
    work.sweep = async () => void (swept = ++sweeps < 3 ? { ...few, [reason]: 100 } : few)
    maintenance.start()
    await vi.advanceTimersByTimeAsync(999)
    expect(taken().filter((call) => call === 'sweep')).toHaveLength(3)
    // Not once it was stopped.
    work.sweep = async () => {
      swept = { ...few, [reason]: 100 }
      maintenance.stop()
    }
    await vi.advanceTimersByTimeAsync(5000)
    expect(taken().filter((call) => call === 'sweep')).toHaveLength(1)
  },
)

test('looks for jobs while another node has the turn to sweep, and sends webhooks while it finds some', async () => {
  const { maintenance, taken, work, turn } = maintained()
  turn.isOurs = false
  maintenance.start()
  await vi.advanceTimersByTimeAsync(0)
  expect(taken()).toEqual(begun)
  await vi.advanceTimersByTimeAsync(1000)
  expect(taken()).toEqual(['wake', 'send', 'tend'])
  work.outbox = async () => -4
  await vi.advanceTimersByTimeAsync(2000)
  expect(taken()).toEqual(['wake', 'send', 'tend', 'wake'])
  maintenance.stop()
})

test('of a thousand workers looks every two minutes', async () => {
  const { maintenance, taken, turn, fleet } = maintained()
  turn.workers = 1000
  maintenance.start()
  // The first poll reads the size of the fleet.
  await vi.advanceTimersByTimeAsync(2000)
  expect(fleet.workers).toBe(1000)
  taken()
  await vi.advanceTimersByTimeAsync(119_000)
  expect(taken().filter((call) => call === 'wake')).toEqual([])
  await vi.advanceTimersByTimeAsync(1000)
  expect(taken().filter((call) => call === 'wake')).toEqual(['wake'])
  maintenance.stop()
})

test('does not begin a sweep while one is in progress, and waits for it at the end', async () => {
  const { maintenance, taken, work } = maintained()
  const [sweep, all] = [gate(), gate()]
  work.sweep = () => sweep.opened
  work.files = () => all.opened
  maintenance.start()
  await vi.advanceTimersByTimeAsync(0)
  taken()
  await vi.advanceTimersByTimeAsync(20_000)
  expect(taken()).toEqual(Array.from({ length: 20 }, () => ['wake', 'send', 'tend']).flat())
  let isFinished = false
  void maintenance.finished().then(() => (isFinished = true))
  sweep.open()
  await vi.advanceTimersByTimeAsync(1)
  expect(isFinished).toBe(false)
  all.open()
  await vi.advanceTimersByTimeAsync(1)
  expect(isFinished).toBe(true)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(taken().filter((call) => call === 'sweep')).toHaveLength(20)
  maintenance.stop()
})

test('of a node whose clock is wrong sweeps nothing, and says so once each time', async () => {
  let wrongBy: number | undefined = 90_000
  const { maintenance, taken, lines } = maintained({ wrongBy: async () => wrongBy })
  maintenance.start()
  await vi.advanceTimersByTimeAsync(20_000)
  expect(taken()).toEqual(Array.from({ length: 21 }, () => ['wake', 'send', 'tend']).flat())
  expect(await maintenance.sweepNow({ files: true, allowMassRemoval: true })).toEqual({
    deleted: 0,
    expired: 0,
    missed: 0,
    purged: 0,
    uploads: 0,
    orphans: 0,
  })
  expect(taken()).toEqual([])
  expect(lines).toEqual([{ level: 'error', fields: {} }])
  wrongBy = undefined
  await vi.advanceTimersByTimeAsync(1000)
  expect(taken()).toEqual(round)
  wrongBy = -61_000
  await vi.advanceTimersByTimeAsync(1000)
  expect(lines).toHaveLength(2)
  maintenance.stop()
})

test('does not keep the process alive', () => {
  vi.useRealTimers()
  const timersThatDo = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timersThatDo()
  const { maintenance } = maintained()
  maintenance.start()
  expect(timersThatDo()).toBe(before)
  maintenance.stop()
})

test('sweeps on request, files only if asked', async () => {
  const { maintenance, taken } = maintained()
  expect(await maintenance.sweepNow({ files: false, allowMassRemoval: true })).toEqual({
    ...swept,
    uploads: 0,
    orphans: 0,
  })
  expect(taken()).toEqual(['sweep'])
  expect(await maintenance.sweepNow({ files: true, allowMassRemoval: true })).toEqual({ ...swept, ...sweptFiles })
  expect(taken()).toEqual(['sweep', ['files', { allowMassRemoval: true }]])
})

test('counts the messages of jobs and batches, and says if they could not be read', async () => {
  const { maintenance, work, lines } = maintained()
  expect(await maintenance.sendWebhooks()).toBe(7)
  work.outbox = () => Promise.reject(new Error('no store'))
  maintenance.sendWebhooksSoon()
  await vi.advanceTimersByTimeAsync(1)
  expect(lines).toEqual([{ level: 'warn', fields: { err: new Error('no store') } }])
})

test.each([
  // Batches for which a message was sent are checked once more.
  [3, ['send', 'tend']],
  [-4, []],
])(
  'that has stopped begins no sweep in a turn that it got late; it had sent %i messages of jobs',
  async (sent, then) => {
    const { maintenance, taken, work, later } = maintained()
    work.outbox = async () => sent
    maintenance.start()
    await vi.advanceTimersByTimeAsync(0)
    taken()
    const turn = gate<{ isOurs: boolean; workers: number }>()
    later.turn = turn.opened
    await vi.advanceTimersByTimeAsync(1000)
    expect(taken()).toEqual(['wake'])
    maintenance.stop()
    expect([maintenance.isStarted, taken()]).toEqual([false, ['stop']])
    turn.open({ isOurs: true, workers: 1 })
    await maintenance.finished()
    expect(taken()).toEqual(then)
  },
)

test('asks for one turn at a time, and says if it is unknown whose it is', async () => {
  const { maintenance, taken, later, lines } = maintained()
  maintenance.start()
  await vi.advanceTimersByTimeAsync(0)
  taken()
  const turn = gate<never>()
  later.turn = turn.opened.then(() => Promise.reject(new Error('no store')))
  await vi.advanceTimersByTimeAsync(3000)
  expect([taken(), later.asked]).toEqual([['wake', 'wake', 'wake'], 1])
  turn.open(undefined as never)
  await maintenance.finished()
  expect(lines).toEqual([{ level: 'warn', fields: { err: new Error('no store') } }])
  later.turn = undefined
  await vi.advanceTimersByTimeAsync(1000)
  expect(taken()).toEqual(round)
  maintenance.stop()
})

test('looks for messages again where the last look sent one, and only there', async () => {
  const { maintenance, taken, work, turn } = maintained()
  turn.isOurs = false
  work.outbox = async () => -3
  maintenance.start()
  await vi.advanceTimersByTimeAsync(1000)
  expect(taken()).toEqual([...begun, 'wake', 'send', 'tend'])
  maintenance.stop()
})

test('sweeps on a store that has no clock of its own', async () => {
  const { maintenance, taken } = maintained({ wrongBy: () => Promise.reject(new Error('no store')) })
  expect(await maintenance.sweepNow({ files: false, allowMassRemoval: false })).toMatchObject(swept)
  expect(taken()).toEqual(['sweep'])
})
