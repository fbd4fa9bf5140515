import type { JobStore } from '../core/engine/ports/job-store.js'
import { assertNone } from './broken-promise.js'

/** Context of a case of the job store contract. */
export interface JobStoreContext {
  store: JobStore
  advance(milliseconds: number): Promise<void>
  /** Damages the stored record of the job, as a fault or another program might. Absent if that is impossible. */
  damage?(id: string): Promise<void>
  close(): Promise<void>
}

/** Window in which the suite's stores remember an idempotency key. */
export const idempotencyMs = 5_000

/** Waits until the idempotency window of a key of `app-1` has passed. */
export async function passWindow(
  { store, advance }: Pick<JobStoreContext, 'store' | 'advance'>,
  key: string,
): Promise<void> {
  await advance(idempotencyMs + 100)
  assertNone(
    (await store.findByIdempotencyKey('app-1', key))?.id,
    `The idempotency key is still known ${idempotencyMs} ms after its job was created. Does the harness give its ` +
      'store the window, open({ idempotencyMs })?',
  )
}

/** Length of the suite's leases: long for the operations of a slow store, short enough to wait for in real time. */
export const leaseMs = 1_000
