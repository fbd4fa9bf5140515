/** The number of units of a scarce resource, and how applications share them. */
export interface ShareBounds {
  total: number
  /** Most units of one application. Default: all. */
  perApplication?: number
  /**
   * Units kept free for applications that hold none; with `take`, only for applications that also got no more than the
   * average lately. Default: an eighth.
   */
  reserve?: number
  /** Most units that one application may wait for with `take`. Default: no limit. */
  waitingPerApplication?: number
}

/** A unit that an application holds. */
export interface Share {
  /**
   * May be called more than once.
   *
   * @param used the part of the unit that was needed, from 0 to 1: only this part counts towards what the application
   *   got lately. Default: 1.
   */
  release(used?: number): void
}

interface Holding extends Share {
  /** `undefined`: the unit cannot be revoked. */
  onLost: (() => void) | undefined
}

interface Waiter {
  /** Order of arrival. */
  number: number
  grant(share: Share): void
}

interface Account {
  /** In the order of their grants. */
  held: Holding[]
  waiting: Waiter[]
  /** Units granted lately; halved at intervals. */
  recent: number
  /** Sequence number of its latest grant; 0: none is known. */
  served: number
}

/** After this many grants, all recent counts are halved. */
const halvedAfter = 512
/** Cap of an application's recent count, so that constantly busy applications take turns. */
const mostRecent = 64

/**
 * Divides scarce units among applications, even if many ask for more than they need. The application that holds the
 * fewest units is next; among equals, the one that got the fewest lately, so that an occasional user waits only for a
 * free unit, not behind constantly busy ones; then the one served longest ago. Some units are reserved for applications
 * that hold none; once these are gone, too, the largest holder loses its latest unit to a newcomer.
 */
export class Shares {
  readonly #total: number
  readonly #perApplication: number
  readonly #reserve: number
  readonly #waitingPerApplication: number
  /** Accounts of applications that hold units, wait for some or had some lately. */
  readonly #accounts = new Map<string, Account>()
  #held = 0
  #waiting = 0
  #granted = 0
  #arrivals = 0
  /** Sum of the recent counts of all applications. */
  #recent = 0
  #holdsBackBusy = false

  constructor({ total, perApplication = total, reserve = Math.floor(total / 8), waitingPerApplication }: ShareBounds) {
    this.#total = total
    this.#perApplication = perApplication
    this.#reserve = reserve
    this.#waitingPerApplication = waitingPerApplication ?? Infinity
  }

  /** Units held by all applications. */
  get held(): number {
    return this.#held
  }

  get total(): number {
    return this.#total
  }

  heldBy(app: string): number {
    return this.#accounts.get(app)?.held.length ?? 0
  }

  /** Applications that hold units and can get no more now. */
  get full(): string[] {
    return [...this.#accounts.keys()].filter((app) => this.heldBy(app) > 0 && !this.hasRoom(app))
  }

  /** Whether a unit is free for the application. */
  hasRoom(app: string): boolean {
    const held = this.heldBy(app)
    const free = this.#total - this.#held
    return held < this.#perApplication && free > (held === 0 ? 0 : this.#reserve)
  }

  /**
   * Takes a unit. `undefined`: none is available now.
   *
   * @param onLost if given, the unit may be revoked later; called after it is revoked
   */
  tryTake(app: string, onLost?: () => void): Share | undefined {
    if (!this.hasRoom(app) && !this.#takeFromLargest(app)) return undefined
    return this.#grant(app, onLost)
  }

  /** Revokes all units that can be revoked. */
  takeAllAway(): void {
    for (const [app, { held }] of this.#accounts)
      for (const holding of held.filter(({ onLost }) => onLost)) {
        this.#drop(app, holding)
        holding.onLost?.()
      }
  }

  /** Whether the application got more than the average lately. */
  asksMoreThanAverage(app: string): boolean {
    return (this.#accounts.get(app)?.recent ?? 0) * this.#accounts.size > this.#recent
  }

  /** While true, applications that got more than the average lately wait, even for a free unit. */
  set holdsBackBusy(value: boolean) {
    this.#holdsBackBusy = value
    if (!value) this.#serveWaiting()
  }

  /** Like `take`, but `undefined` where the application would have to wait. */
  takeNow(app: string): Share | undefined {
    const isFirst = (this.#accounts.get(app)?.waiting.length ?? 0) === 0
    return isFirst && this.#isNext(app) ? this.#grant(app) : undefined
  }

  /**
   * Waits for a unit, in the application's turn. `undefined`: the application already waits for as many as it may.
   *
   * @throws the signal's reason if it fires before the turn
   */
  async take(app: string, signal?: AbortSignal): Promise<Share | undefined> {
    signal?.throwIfAborted()
    const share = this.takeNow(app)
    if (share) return share
    const { waiting } = this.#account(app)
    if (waiting.length >= this.#waitingPerApplication) {
      this.#forgetIdle(app)
      return undefined
    }
    return await new Promise<Share>((resolve, reject) => {
      const waiter: Waiter = {
        number: ++this.#arrivals,
        grant(share) {
          signal?.removeEventListener('abort', onAbort)
          resolve(share)
        },
      }
      const onAbort = () => {
        waiting.splice(waiting.indexOf(waiter), 1)
        this.#waiting--
        this.#forgetIdle(app)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      waiting.push(waiter)
      this.#waiting++
    })
  }

  /**
   * Does work with a unit, in the application's turn. Calls must not be nested: the inner would wait for the outer.
   *
   * @param options.refusal the error for an application that already waits for as many units as it may
   * @throws the refusal; the signal's reason if it fires before the turn
   */
  async use<Result>(
    app: string,
    work: () => Promise<Result>,
    { signal, refusal }: { signal?: AbortSignal; refusal?: () => Error } = {},
  ): Promise<Result> {
    const share = await this.take(app, signal)
    if (!share && refusal) throw refusal()
    try {
      return await work()
    } finally {
      share?.release()
    }
  }

  /** Whether an application may get a unit in its turn: the reserve is for those that seldom ask. */
  #isNext(app: string): boolean {
    if (!this.hasRoom(app)) return false
    const isBusy = (this.#accounts.get(app)?.recent ?? 0) >= mostRecent / 2 || this.asksMoreThanAverage(app)
    return !isBusy || (!this.#holdsBackBusy && this.#total - this.#held > this.#reserve)
  }

  /** Revokes a unit of the largest holder for an application that holds none. Returns whether it could. */
  #takeFromLargest(app: string): boolean {
    if (this.heldBy(app) > 0) return false
    let largest: { holder: string; holding: Holding; count: number } | undefined
    for (const [holder, { held }] of this.#accounts) {
      const holding = held.findLast(({ onLost }) => onLost)
      if (holding && held.length > (largest?.count ?? 1)) largest = { holder, holding, count: held.length }
    }
    if (!largest) return false
    this.#drop(largest.holder, largest.holding)
    largest.holding.onLost?.()
    return true
  }

  #grant(app: string, onLost?: () => void): Share {
    const account = this.#account(app)
    account.served = ++this.#arrivals
    this.#count(account, Math.min(mostRecent, account.recent + 1))
    const holding: Holding = {
      onLost,
      release: (used = 1) => {
        if (!this.#drop(app, holding)) return
        this.#count(account, Math.max(0, account.recent - (1 - used)))
        this.#serveWaiting()
      },
    }
    account.held.push(holding)
    this.#held++
    if (++this.#granted % halvedAfter === 0) this.#halve()
    return holding
  }

  /** Returns whether the unit was still held. */
  #drop(app: string, holding: Holding): boolean {
    const held = this.#accounts.get(app)?.held ?? []
    const at = held.indexOf(holding)
    if (at < 0) return false
    held.splice(at, 1)
    this.#held--
    this.#forgetIdle(app)
    return true
  }

  #serveWaiting(): void {
    while (this.#waiting > 0) {
      const next = this.#next()
      const waiter = next?.account.waiting.shift()
      if (!next || !waiter) return
      this.#waiting--
      waiter.grant(this.#grant(next.app))
    }
  }

  #count(account: Account, recent: number): void {
    this.#recent += recent - account.recent
    account.recent = recent
  }

  #halve(): void {
    for (const [app, account] of this.#accounts) {
      this.#count(account, Math.floor(account.recent / 2))
      this.#forgetIdle(app)
    }
  }

  #next(): { app: string; account: Account } | undefined {
    let next: { app: string; account: Account } | undefined
    for (const [app, account] of this.#accounts) {
      if (account.waiting.length === 0 || !this.#isNext(app)) continue
      if (!next || isBefore(account, next.account)) next = { app, account }
    }
    return next
  }

  #account(app: string): Account {
    const account = this.#accounts.get(app) ?? { held: [], waiting: [], recent: 0, served: 0 }
    this.#accounts.set(app, account)
    return account
  }

  #forgetIdle(app: string): void {
    const account = this.#accounts.get(app)
    if (account?.held.length === 0 && account.waiting.length === 0 && account.recent === 0) this.#accounts.delete(app)
  }
}

function isBefore(one: Account, other: Account): boolean {
  if (one.held.length !== other.held.length) return one.held.length < other.held.length
  if (one.recent !== other.recent) return one.recent < other.recent
  if (one.served !== other.served) return one.served < other.served
  return (one.waiting[0]?.number ?? 0) < (other.waiting[0]?.number ?? 0)
}
