import { describe, expect, test, vi } from 'vitest'
import { type Share, type ShareBounds, Shares } from '../../src/core/engine/limits/shares.js'

/** Takes as many units as the application can get. */
function takeAll(shares: Shares, app: string, onLost?: () => void): Share[] {
  const taken: Share[] = []
  for (;;) {
    const share = shares.hasRoom(app) ? shares.tryTake(app, onLost) : undefined
    if (!share) return taken
    taken.push(share)
  }
}

describe('units that are free', () => {
  test('are given up to the share of an application, never more than exist', () => {
    const shares = new Shares({ total: 5, perApplication: 3, reserve: 0 })
    expect(takeAll(shares, 'a')).toHaveLength(3)
    expect(takeAll(shares, 'b')).toHaveLength(2)
    expect(takeAll(shares, 'c')).toHaveLength(0)
    expect([shares.held, shares.heldBy('a'), shares.heldBy('b'), shares.heldBy('c')]).toEqual([5, 3, 2, 0])
    expect(shares.full).toEqual(['a', 'b'])
  })

  test('are left in part for applications that hold none', () => {
    const shares = new Shares({ total: 8, reserve: 2 })
    expect(takeAll(shares, 'a')).toHaveLength(6)
    expect(shares.full).toEqual(['a'])
    expect(takeAll(shares, 'b')).toHaveLength(1)
    expect(takeAll(shares, 'c')).toHaveLength(1)
    expect(shares.held).toBe(8)
  })

  test('are by default reserved to an eighth, and a single unit is not', () => {
    expect(takeAll(new Shares({ total: 64 }), 'a')).toHaveLength(56)
    expect(takeAll(new Shares({ total: 1 }), 'a')).toHaveLength(1)
  })

  test('come back once, however often one is released', () => {
    const shares = new Shares({ total: 2, reserve: 0 })
    const [first] = takeAll(shares, 'a')
    first!.release()
    first!.release()
    expect(shares.held).toBe(1)
    expect(shares.full).toEqual([])
  })
})

describe('where no unit is free', () => {
  test('the application that holds the most loses its latest one to one that holds none', () => {
    const shares = new Shares({ total: 5, reserve: 0 })
    const lost: string[] = []
    for (const [n, app] of ['a', 'b', 'b', 'a', 'a'].entries()) shares.tryTake(app, () => lost.push(`${app}${n}`))
    expect(shares.tryTake('c')).toBeDefined()
    expect(lost).toEqual(['a4'])
    expect([shares.heldBy('a'), shares.heldBy('b'), shares.heldBy('c'), shares.held]).toEqual([2, 2, 1, 5])
  })

  test('an application that holds one takes none from others', () => {
    const shares = new Shares({ total: 4, reserve: 0 })
    const onLost = vi.fn()
    for (const app of ['b', 'a', 'a', 'a']) shares.tryTake(app, onLost)
    expect(shares.tryTake('b')).toBeUndefined()
    expect(onLost).not.toHaveBeenCalled()
  })

  test('no application loses its only unit, or one that may not be taken away', () => {
    const shares = new Shares({ total: 3, reserve: 0 })
    for (const app of ['a', 'b', 'b']) shares.tryTake(app)
    expect(shares.tryTake('c')).toBeUndefined()
    const single = new Shares({ total: 2, reserve: 0 })
    for (const app of ['a', 'b']) single.tryTake(app, () => {})
    expect(single.tryTake('c')).toBeUndefined()
    expect(single.heldBy('c')).toBe(0)
  })

  test('what is lost cannot be released again', () => {
    const shares = new Shares({ total: 2, reserve: 0 })
    const [, second] = takeAll(shares, 'a', () => {})
    shares.tryTake('b')
    second!.release()
    expect(shares.held).toBe(2)
  })
})

describe('waiting applications', () => {
  /** The order in which callers get their unit; each releases it when the next one is requested. */
  function waitingLine(bounds: ShareBounds) {
    const shares = new Shares(bounds)
    const order: string[] = []
    const held: Share[] = []
    const ask = (app: string, signal?: AbortSignal) =>
      shares.take(app, signal).then((share) => {
        order.push(share ? app : `${app} refused`)
        if (share) held.push(share)
      })
    const settled = () => new Promise((resolve) => setImmediate(resolve))
    const runAll = async () => {
      await settled()
      for (let share = held.shift(); share; share = held.shift()) {
        share.release()
        await settled()
      }
    }
    return { shares, order, ask, runAll, settled }
  }

  test('take turns, whichever requests the most', async () => {
    const { order, ask, runAll } = waitingLine({ total: 1 })
    for (let n = 0; n < 4; n++) void ask('a')
    for (const app of ['b', 'c', 'b']) void ask(app)
    await runAll()
    expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a'])
  })

  test('are served first if they seldom request, ahead of those that always do', async () => {
    const { shares, order, ask, runAll, settled } = waitingLine({ total: 1 })
    // Each requests another unit after its turn, like an application that writes a file in many steps.
    const busy = Array.from({ length: 20 }, (_, n) => `busy ${n}`)
    for (const app of busy) shares.tryTake(app)?.release()
    const held = shares.tryTake('busy 0')
    for (const app of busy) void ask(app)
    for (let n = 0; n < 2; n++) void ask('seldom')
    held!.release()
    await settled()
    await runAll()
    expect(order.slice(0, 2)).toEqual(['seldom', 'busy 1'])
    expect(order.indexOf('seldom', 1)).toBeLessThan(busy.length + 1)
  })

  test('leave the reserve to those that request less than most, however many request a lot', async () => {
    const { shares, order, ask, settled } = waitingLine({ total: 2, reserve: 1 })
    // So many applications that none gets a large part.
    const busy = Array.from({ length: 100 }, (_, n) => `busy ${n}`)
    for (let round = 0; round < 4; round++) for (const app of busy) shares.tryTake(app)?.release()
    shares.tryTake('seldom')?.release()
    for (const app of busy.slice(0, 3)) void ask(app)
    await settled()
    expect(order).toEqual(['busy 0'])
    void ask('seldom')
    await settled()
    expect(order).toEqual(['busy 0', 'seldom'])
  })

  test('wait if they request more than most while these are held back, and are served afterwards', async () => {
    const { shares, order, ask, settled } = waitingLine({ total: 2, reserve: 0 })
    for (let n = 0; n < 4; n++) shares.tryTake('busy')?.release()
    shares.tryTake('seldom')?.release()
    shares.holdsBackBusy = true
    void ask('busy')
    await settled()
    expect(order).toEqual([])
    void ask('seldom')
    await settled()
    expect(order).toEqual(['seldom'])
    shares.holdsBackBusy = false
    await settled()
    expect(order).toEqual(['seldom', 'busy'])
  })

  test('take turns again when their last units are long ago', async () => {
    const { shares, order, ask, runAll, settled } = waitingLine({ total: 1 })
    for (let n = 0; n < 1000; n++) shares.tryTake('once busy')?.release()
    for (let n = 0; n < 6000; n++) shares.tryTake(`one of many ${n}`)?.release()
    const held = shares.tryTake('another')
    void ask('once busy')
    for (let n = 0; n < 3; n++) void ask('new')
    held!.release()
    await settled()
    await runAll()
    expect(order[0]).toBe('once busy')
  })

  test('are served first if they hold the least', async () => {
    const { shares, order, ask, settled } = waitingLine({ total: 3, reserve: 0 })
    const [first, second] = [shares.tryTake('a'), shares.tryTake('a')]
    shares.tryTake('b')
    for (const app of ['a', 'b', 'c']) void ask(app)
    first!.release()
    await settled()
    expect(order).toEqual(['c'])
    second!.release()
    await settled()
    // Now `a` holds no unit.
    expect(order).toEqual(['c', 'a'])
  })

  test('get no more than they may hold, and hold up no other', async () => {
    const { shares, order, ask, settled } = waitingLine({ total: 3, perApplication: 1, reserve: 0 })
    const own = shares.tryTake('a')
    void ask('a')
    await ask('b')
    expect(order).toEqual(['b'])
    own!.release()
    await settled()
    expect(order).toEqual(['b', 'a'])
  })

  test('are refused beyond a bound for each application', async () => {
    const { order, ask, runAll } = waitingLine({ total: 1, waitingPerApplication: 1 })
    for (const app of ['a', 'a', 'a', 'b']) void ask(app)
    await runAll()
    expect(order).toEqual(['a', 'a refused', 'b', 'a'])
  })

  test('may give up, and are forgotten', async () => {
    const { shares, order, ask, runAll } = waitingLine({ total: 1 })
    await ask('a')
    const stop = new AbortController()
    const given = ask('b', stop.signal)
    void ask('c')
    stop.abort(new Error('gone'))
    await expect(given).rejects.toThrow('gone')
    await expect(shares.take('d', stop.signal)).rejects.toThrow('gone')
    await runAll()
    expect(order).toEqual(['a', 'c'])
    expect([shares.held, shares.full]).toEqual([0, []])
  })
})

test('one of a hundred applications is served within a turn of each, whatever they hold', async () => {
  const shares = new Shares({ total: 8, perApplication: 4, reserve: 0 })
  const line: string[] = []
  const held: Share[] = []
  for (let n = 0; n < 300; n++) {
    const app = `hostile ${n % 99}`
    void shares.take(app).then((share) => void (line.push(app), held.push(share!)))
  }
  void shares.take('other').then((share) => void (line.push('other'), held.push(share!)))
  for (let served = 0; served < 301; served++) {
    await new Promise((resolve) => setImmediate(resolve))
    held.shift()!.release()
  }
  expect(line).toHaveLength(301)
  expect(line.indexOf('other')).toBeLessThan(100)
})
