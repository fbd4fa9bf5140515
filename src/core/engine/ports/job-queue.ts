/** What a queue carries: a reference, never the work. The store decides whether it still means anything. */
export interface JobReference {
  id: string
  /** Application that owns the job; queues take turns between applications. */
  app: string
}

export interface QueueSubscription {
  /** Takes no further reference; resolves when the handlers that are running have returned. */
  stop(): Promise<void>
}

/**
 * The doorbell. It may deliver a reference twice, late, or (when its engine lost its data) never: the store's leases make the
 * first two harmless and the recovery sweep rings again for the third.
 */
export interface JobQueue {
  /** `process`: rings only in this process. `shared`: rings in every subscribed process. */
  readonly traits: { readonly scope: 'process' | 'shared' }

  /** Rings once for this job. `delayMs` postpones it. Never promises delivery. */
  publish(reference: JobReference, options?: { delayMs?: number }): Promise<void>

  /** Calls `handler` for each reference, at most `concurrency` at a time. A handler that throws does not stop the queue. */
  subscribe(
    handler: (reference: JobReference) => Promise<void>,
    options: { concurrency: number },
  ): Promise<QueueSubscription>

  /** References waiting to be delivered, delayed ones included. */
  depth(): Promise<number>

  close(): Promise<void>
}
