// jobs.mjs: a complete job store: jobs in memory, every change a line of a file. For one process.
import { claiming } from './claiming.mjs'
import { creating } from './creating.mjs'
import { documents } from './documents.mjs'
import { openJournal } from './journal.mjs'
import { reading } from './reading.mjs'
import { State } from './state.mjs'
import { sweeping } from './sweeping.mjs'

/** @param {{ path: string, clock?: () => number, idempotencyMs?: number }} options */
export async function fileJobs({ path, clock = Date.now, idempotencyMs = 24 * 60 * 60 * 1000 }) {
  const journal = await openJournal(path)
  const state = new State(journal, clock, idempotencyMs)
  /** @type {import('stemwork/adapter').JobStore} */
  const jobs = {
    traits: { scope: 'process' },
    time: async () => clock(),
    ...creating(state),
    ...reading(state),
    ...claiming(state),
    ...sweeping(state),
    documents: documents(state),
  }
  return { jobs, close: () => journal.close() }
}
