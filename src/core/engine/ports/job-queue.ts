export interface QueueSubscription {
  /**
   * Stops calling the listener; resolves when a call in progress has returned, and none begins after that.
   * Notifications that come later are left to other subscribers. Stopping twice is not an error.
   */
  stop(): Promise<void>
}

/**
 * Wakes workers. A notification says "there may be work" and nothing else: which job runs next is decided by the store,
 * which every woken worker asks. So notifications may be merged, duplicated, late or lost: each worker also asks at
 * every tick of its sweep.
 */
export interface JobQueue {
  readonly traits: {
    /** `process`: wakes only this process. `shared`: wakes subscribers in any process. */
    readonly scope: 'process' | 'shared'
    /** How many subscribers with room a notification wakes. Default: one. */
    readonly wakes?: 'one' | 'all'
  }

  /**
   * Lets a subscriber call its listener once more, `delayMs` from now (default: 0). One call of a
   * listener may answer any number of notifications that came before it began; one that comes during a call is answered
   * by a call that begins after it. A delayed one holds no other up. Never promises delivery: a crash may lose it.
   *
   * @param options.workers addresses of the subscribers that are meant; only given to a queue that wakes all
   */
  notify(options?: { delayMs?: number; workers?: readonly string[] }): Promise<void>

  /**
   * Calls `listener` on notifications, including those from before the subscription. Each goes to at least one
   * subscriber, and to none whose listener has not returned yet: calls of one listener never overlap, and a listener
   * that returns only when its worker has room leaves notifications to others meanwhile. It may also be called without
   * a notification. A listener that throws or rejects does not end the subscription.
   *
   * @param options.address by which notifications may name this subscriber: letters and digits
   */
  subscribe(listener: () => Promise<void>, options?: { address?: string }): Promise<QueueSubscription>

  /** Returns if the queue is reachable, and else throws; for health checks. */
  check(): Promise<void>

  /** Later calls of `notify`, `subscribe` and `check` throw `SHUTTING_DOWN`. Closing twice is not an error. */
  close(): Promise<void>
}
