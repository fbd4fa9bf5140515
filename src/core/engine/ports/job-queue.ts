export interface QueueSubscription {
  /**
   * Stops calling the listener; resolves when a call in progress has returned. No call begins after that, and later
   * notifications are left to other subscribers. Stopping twice is not an error.
   */
  stop(): Promise<void>
}

/**
 * Wakes workers. A notification says only "there may be work": the store, from which every woken worker claims, decides
 * which job runs next. So notifications may be merged, duplicated, late or lost: each worker also claims at every tick
 * of its sweep.
 */
export interface JobQueue {
  readonly traits: {
    /** `process`: wakes only this process. `shared`: wakes subscribers in any process. */
    readonly scope: 'process' | 'shared'
    /** How many of the subscribers with room a notification wakes. Default: one. */
    readonly wakes?: 'one' | 'all'
  }

  /**
   * Makes a subscriber call its listener once more, `delayMs` from now (default: 0). One call of a listener may answer
   * any number of notifications from before its start; a notification during a call is answered by a later call. A
   * delayed notification does not delay others. Delivery is not guaranteed: a crash may lose a notification.
   *
   * @param options.workers addresses of the intended subscribers; only given to a queue that wakes all
   */
  notify(options?: { delayMs?: number; workers?: readonly string[] }): Promise<void>

  /**
   * Calls `listener` on notifications, including those from before the subscription. Each notification goes to at least
   * one subscriber, and to none whose listener has not returned yet: calls of one listener never overlap, and a
   * listener that returns only when its worker has room leaves notifications to others meanwhile. The listener may also
   * be called without a notification. If it throws or rejects, the subscription continues.
   *
   * @param options.address letters and digits by which notifications may name this subscriber
   */
  subscribe(listener: () => Promise<void>, options?: { address?: string }): Promise<QueueSubscription>

  /** Resolves if the queue is reachable, otherwise throws; for health checks. */
  check(): Promise<void>

  /** Later calls of `notify`, `subscribe` and `check` throw `SHUTTING_DOWN`. Closing twice is not an error. */
  close(): Promise<void>
}
