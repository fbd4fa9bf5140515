import { setTimeout as sleep } from 'node:timers/promises'
import type { JobStore } from '../../core/engine/ports/job-store.js'
import { idempotencyMs, type JobStoreContext } from '../job-store-context.js'
import { changeCases } from './changes.js'
import { deliveryCases } from './deliveries.js'
import { documentCases } from './documents.js'
import { filterCases } from './filters.js'
import { poolCases } from './pools.js'
import { quotaCases } from './quotas.js'
import { claimCases } from './claims.js'
import { interleavingCases } from './interleavings.js'
import { leaseCases } from './leases.js'
import { limitCases } from './limits.js'
import { ledgerCases } from './ledger.js'
import { listCases } from './lists.js'
import { recordCases } from './records.js'
import { rulesCases } from './rules.js'
import { schedulingCases } from './scheduling.js'
import { severalClaimsCases } from './several-claims.js'
import { sweepCases } from './sweep.js'
import { type ContractApi, registerSuite, type Skips } from '../suite.js'

/** A new, open store. */
export interface OpenJobStore {
  store: JobStore
  /** Advances the store's clock. Without it the suite waits in real time. */
  advance?(milliseconds: number): void | Promise<void>
  /**
   * Replaces the stored job by something that is not a record, bypassing the store. Needed by the cases about damaged
   * records.
   */
  damage?(id: string): Promise<void>
  /** Closes the store and removes what it left. */
  close(): Promise<void>
}

const groups = {
  'creating and reading': recordCases,
  'limiting queued jobs': limitCases,
  'quotas of the day, and many jobs at once': quotaCases,
  'pools and the backlog': poolCases,
  documents: documentCases,
  'the ledger of use': ledgerCases,
  changing: changeCases,
  'webhook messages': deliveryCases,
  claiming: claimCases,
  'claiming several jobs at once': severalClaimsCases,
  'leases and fencing': leaseCases,
  scheduling: { ...schedulingCases, ...rulesCases },
  'listing and counting': listCases,
  filtering: filterCases,
  'what the sweep asks for': sweepCases,
  'everything at once': interleavingCases,
}

type Names<Groups> =
  Groups extends Record<string, infer Group> ? (Group extends unknown ? keyof Group & string : never) : never
export type JobStoreCase = Names<typeof groups>

export interface JobStoreHarness {
  /** An empty store, with the given idempotency window. Called once for each case. */
  open(options: { idempotencyMs: number }): Promise<OpenJobStore>
  skips?: Skips<JobStoreCase>
  /** Time limit of each case. Default: 30,000. */
  timeoutMs?: number
}

/**
 * Proves that a store fulfils the `JobStore` port.
 *
 * @example
 * import { describe, test } from 'vitest'
 * jobStoreContract({ describe, test }, {
 *   async open({ idempotencyMs }) {
 *     return { store: myJobs({ idempotencyMs }), async close() {} }
 *   },
 * })
 */
export function jobStoreContract(api: ContractApi, harness: JobStoreHarness): void {
  const { skips, timeoutMs } = harness
  registerSuite<JobStoreContext>(api, 'the job store contract', groups, {
    skips,
    timeoutMs,
    async open() {
      const opened = await harness.open({ idempotencyMs })
      return {
        store: opened.store,
        advance: async (milliseconds) => void (await (opened.advance ?? sleep)(milliseconds)),
        damage: opened.damage?.bind(opened),
        close: () => opened.close(),
      }
    },
  })
}
