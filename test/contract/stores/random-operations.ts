import { randomUUID } from 'node:crypto'
import { canceledError, sampleError, sampleJob, sampleOutputs } from '../../../src/contract/job-samples.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { SchedulingRule } from '../../../src/core/engine/job/scheduling.js'
import type { ClaimRequest, JobChange } from '../../../src/core/engine/job/transitions.js'
import type { Claimable, JobQuery, JobStore } from '../../../src/core/engine/ports/job-store.js'
import { pick } from '../../crash/random.js'

/** One call, with the same arguments for each store. */
export interface Operation {
  words: unknown[]
  run(store: JobStore): Promise<unknown>
  /** Whether the store decides the order of the answer. */
  isUnordered?: boolean
}

/** Results of earlier operations. */
export interface Seen {
  random(): number
  now(): number
  ids: string[]
  jobs: Map<string, JobRecord>
  /** Number of operations so far. */
  count: number
}

/**
 * Milliseconds that no other operation adds to the time, which advances in whole seconds: the store may choose between
 * jobs that have waited equally long, or whose leases ended together.
 */
function own({ count }: Seen, index = 0): number {
  return 1 + count + 300 * index
}

/** Texts that storage tends to spoil, to take for syntax, or to sort and compare differently. */
const oddTexts = [
  ' |%|_|*|"|\\|\\u0000|\n|a/b|a|A|á|ab|a b|Łódź|🎵|ß|SS|İ|ﬁ|«a»|o’neil|日本|null|constructor'.split('|'),
  ["'", "o'neil", 'é'.normalize('NFD'), '\u2028', '\uffff', '\u{10ffff}', 'x'.repeat(500)],
].flat()
const applications = ['app-1', 'app-2', 'Ä']
const workflows = ['service/a', 'service/b', 'service/C']
const pools = ['', '', 'gpu', 'big gpu', 'gpuMemory=24']
const statuses = ['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED'] as const

type Make = (seen: Seen) => Operation | undefined

/** All kinds of operations, the usual ones with a larger share. */
const kinds: Record<string, { share: number; make: Make }> = {
  create: { share: 4, make: create },
  createAll: { share: 1, make: createAll },
  claim: { share: 5, make: claim },
  'change of a running job': { share: 6, make: (seen) => change(seen, runningJobs(seen)) },
  'change of any job': { share: 3, make: (seen) => change(seen, [...seen.jobs.values()]) },
  list: { share: 4, make: list },
  count: { share: 2, make: count },
  ahead: { share: 1, make: ahead },
  backlog: { share: 1, make: () => ({ words: ['backlog'], run: (store) => store.backlog() }) },
  due: { share: 2, make: due },
  used: { share: 1, make: used },
  rule: { share: 0.5, make: rule },
}

export function nextOperation(seen: Seen): Operation | undefined {
  const names = Object.keys(kinds)
  const total = names.reduce((sum, name) => sum + kinds[name]!.share, 0)
  let at = seen.random() * total
  const name = names.find((each) => (at -= kinds[each]!.share) < 0) ?? 'list'
  return kinds[name]!.make(seen)
}

function chance({ random }: Seen, share: number): boolean {
  return random() < share
}

function int({ random }: Seen, below: number): number {
  return Math.floor(random() * below)
}

function runningJobs({ jobs }: Seen): JobRecord[] {
  return [...jobs.values()].filter(({ status }) => status === 'STARTED')
}

function newJob(seen: Seen, app: string): JobRecord {
  const { random, now } = seen
  const text = () => pick(random, oddTexts)
  const job = sampleJob({
    app,
    name: `${text()} ${text()}`,
    workflow: pick(random, workflows),
    batchName: chance(seen, 0.5) ? null : text(),
    uploads: chance(seen, 0.2) ? { inputUrl: `uploads/${text()}` } : {},
    metadata: { [text()]: text() },
    priority: pick(random, [-1, 0, 0, 0, 1]),
    notBefore: chance(seen, 0.8) ? 0 : now() + int(seen, 20) * 1000 + own(seen),
    deadline: chance(seen, 0.7) ? null : now() + int(seen, 20_000),
    pool: pick(random, pools),
    metered: chance(seen, 0.3),
  })
  seen.ids.push(job.id)
  return job
}

function create(seen: Seen): Operation {
  const job = newJob(seen, pick(seen.random, applications))
  const idempotency = chance(seen, 0.3) ? { key: pick(seen.random, ['k', ...oddTexts]), digest: 'd' } : null
  const options = {
    ...(chance(seen, 0.2) && { maxQueued: int(seen, 8) }),
    ...(chance(seen, 0.2) && { quota: { jobs: int(seen, 12) } }),
  }
  return {
    words: ['create', { ...job, idempotency }, options],
    run: (store) => store.create({ ...structuredClone(job), idempotency }, options),
  }
}

function createAll(seen: Seen): Operation {
  const app = pick(seen.random, applications)
  const jobs = Array.from({ length: 1 + int(seen, 3) }, (_, index) => ({
    ...newJob(seen, app),
    notBefore: seen.now() + own(seen, index),
  }))
  const options = chance(seen, 0.3) ? { maxQueued: int(seen, 12) } : {}
  return { words: ['createAll', jobs, options], run: (store) => store.createAll(structuredClone(jobs), options) }
}

function claim(seen: Seen): Operation {
  const { random } = seen
  const request: ClaimRequest & Claimable = {
    owner: 'w',
    leaseMs: int(seen, 4) * 1000 + own(seen),
    nonce: randomUUID(),
    ...(chance(seen, 0.2) && { lapsedBefore: seen.now() - int(seen, 2000) }),
    ...(chance(seen, 0.2) && seen.ids.length > 0 && { id: pick(random, seen.ids) }),
    ...(chance(seen, 0.2) && { exceptApps: [pick(random, applications)] }),
    ...(chance(seen, 0.1) && { onlyApps: [pick(random, applications)] }),
    ...(chance(seen, 0.2) && { workflows: [pick(random, workflows), pick(random, workflows)] }),
    ...(chance(seen, 0.2) && { labels: ['gpu', 'big', 'gpuMemory=24'].slice(0, int(seen, 4)) }),
    ...(chance(seen, 0.1) && { belowRunning: 1 + int(seen, 2) }),
  }
  return { words: ['claim', request], run: (store) => store.claim(request) }
}

function change(seen: Seen, jobs: readonly JobRecord[]): Operation | undefined {
  if (jobs.length === 0) return undefined
  const job = pick(seen.random, jobs)
  const wanted = pick(seen.random, changesOf(seen, job))
  return { words: ['apply', job.id, wanted], run: (store) => store.apply(job.id, structuredClone(wanted)) }
}

function changesOf(seen: Seen, job: JobRecord): JobChange[] {
  const { random, now } = seen
  const held = { token: chance(seen, 0.9) ? job.token : job.token - 1, nonce: job.lease?.nonce ?? '' }
  const messages = chance(seen, 0.4) ? [{ id: randomUUID(), url: 'https://a.example/x', event: 'job.ended' }] : []
  const end = { retentionMs: int(seen, 50_000), messages }
  const used = { audioSeconds: int(seen, 1000), bytes: 2 ** 40, processorSeconds: int(seen, 100) }
  const delivery = { deliveryId: job.deliveries[0]?.id ?? 'none' }
  const failure = pick(random, oddTexts)
  const outputs = sampleOutputs(job.id, job.token)
  const name = pick(random, ['s0', 's1'])
  const state = pick(random, ['done', 'waiting'] as const)
  const times = { startedAt: now(), endedAt: null, until: now() + 1000 + own(seen) }
  const step = { name, version: '', state, ...times, attempts: 1, value: failure, files: {}, error: null }
  return [
    { kind: 'heartbeat', ...held, leaseMs: 1000 + own(seen), progress: 0.5, stage: failure },
    { kind: 'succeed', ...held, ...end, outputs, details: { t: failure }, used, usage: { audioSeconds: 7, bytes: 9 } },
    { kind: 'fail', ...held, ...end, error: sampleError, failure, usage: { bytes: 7 } },
    { kind: 'requeue', ...held, delayMs: pick(random, [0, 5000]) + own(seen), onShutdown: chance(seen, 0.3), failure },
    { kind: 'preempt', ...held },
    { kind: 'step', ...held, leaseMs: 1000 + own(seen), step },
    { kind: 'suspend', ...held, waitsFor: ['s0', 's1'], ...(chance(seen, 0.3) && { pool: pick(random, pools) }) },
    { kind: 'event', name: 's1', value: failure },
    { kind: 'cancel', error: canceledError, ...end },
    { kind: 'miss', error: sampleError, ...end },
    { kind: 'release', lapsedBefore: now() - pick(random, [0, 1000]) },
    { kind: 'retry' },
    { kind: 'delete' },
    { kind: 'expire' },
    { kind: 'beginDelivery', ...delivery, attempts: int(seen, 2), retryInMs: pick(random, [null, 1000]) },
    { kind: 'deferDelivery', ...delivery, delayMs: 1000 },
    { kind: 'endDelivery', ...delivery, outcome: pick(random, ['pending', 'delivered'] as const), status: 200 },
  ]
}

function queryOf(seen: Seen): JobQuery {
  const { random } = seen
  const time = () => pick(random, [0, seen.now() - int(seen, 100_000), seen.now() - 0.5, seen.now() + 1, 8.64e15])
  return {
    ...(chance(seen, 0.5) && { app: pick(random, [...applications, ...oddTexts]) }),
    ...(chance(seen, 0.3) && { statuses: [pick(random, statuses), pick(random, statuses)].slice(0, int(seen, 3)) }),
    ...(chance(seen, 0.2) && { workflows: [pick(random, workflows), pick(random, oddTexts)].slice(0, int(seen, 3)) }),
    ...(chance(seen, 0.2) && { batchName: pick(random, oddTexts) }),
    ...(chance(seen, 0.15) && { createdAfter: time() }),
    ...(chance(seen, 0.15) && { createdBefore: time() }),
    ...(chance(seen, 0.15) && { completedAfter: time() }),
    ...(chance(seen, 0.15) && { completedBefore: time() }),
    ...(chance(seen, 0.1) && { uploadKey: `uploads/${pick(random, oddTexts)}` }),
    ...(chance(seen, 0.25) && { search: `${pick(random, oddTexts)} ${pick(random, oddTexts)}` }),
  }
}

function list(seen: Seen): Operation {
  const { random } = seen
  const last = seen.jobs.get(pick(random, ['none', ...seen.ids]))
  const page = {
    ...queryOf(seen),
    limit: pick(random, [0, 1, 3, 1000]),
    ...(chance(seen, 0.2) && { offset: int(seen, 6) }),
    ...(chance(seen, 0.3) && last && { after: { createdAt: last.createdAt, id: last.id } }),
  }
  return { words: ['list', page], run: (store) => store.list(page) }
}

function count(seen: Seen): Operation {
  const query = queryOf(seen)
  const options = chance(seen, 0.5) ? { max: int(seen, 6) } : undefined
  return { words: ['count', query, options], run: (store) => store.count(query, options) }
}

function ahead(seen: Seen): Operation {
  const id = pick(seen.random, ['none', ...seen.ids])
  return { words: ['ahead', id], run: (store) => store.ahead(id, { max: 100 }) }
}

function due({ random }: Seen): Operation {
  const reason = pick(random, ['lapsed', 'abandoned', 'deleted', 'expired', 'overdue'] as const)
  if (random() < 0.2) {
    const page = { limit: 1000, perApp: 1000, exceptApps: [] }
    return { words: ['deliverable'], run: (store) => store.deliverable(page), isUnordered: true }
  }
  return { words: ['due', reason], run: (store) => store.due(reason, 1000), isUnordered: true }
}

function used({ random }: Seen): Operation {
  const app = pick(random, applications)
  return {
    words: ['used', app],
    run: async (store) => [await store.usage(app), await store.resultBytes(app), await store.recordBytes(app)],
  }
}

function rule(seen: Seen): Operation {
  const { random } = seen
  const target = pick<SchedulingRule['target']>(random, [
    { kind: 'deployment' },
    { kind: 'application', id: pick(random, applications) },
    { kind: 'workflow', id: pick(random, workflows) },
  ])
  const state = pick(random, ['open', 'open', 'paused', 'draining'] as const)
  const given = { state, maxRunning: pick(random, [null, null, 1, 2]) }
  return { words: ['changeRule', target, given], run: (store) => store.changeRule(target, given) }
}
