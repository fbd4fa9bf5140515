import {
  abortable,
  addUsage,
  alreadyExists,
  blobChunks,
  changedRules,
  checkBlobKey,
  checkBlobPrefix,
  claim,
  dayOf,
  deliverableAt,
  DocumentMap,
  eachFilter,
  isAbandoned,
  isClaimable,
  isDue,
  isHeldBack,
  isTerminal,
  type IndexedJob,
  indexedPart,
  JobIndex,
  jobRecordSchema,
  lapsesAt,
  matcherOf,
  mostCounted,
  newJob,
  noUsage,
  overdueAt,
  plainCopy,
  queueFull,
  quotaExceeded,
  removableAt,
  recordBytes,
  resultBytes,
  searchText,
  searchWords,
  servesPool,
  SortedList,
  StemworkError,
  transition,
  waitingSince,
  type Backlog,
  type ByFilter,
  type JobRecord,
  type JobStore,
  type SchedulingRule,
  type StoredDocument,
} from 'stemwork/adapter'
import { expectType } from './expect-type.js'

const job = newJob({
  app: 'me',
  name: null,
  workflow: 'service/mine',
  params: {},
  uploads: {},
  batchName: null,
  metadata: {},
  copyResultsTo: {},
  webhook: null,
  idempotency: null,
})
expectType<JobRecord>()(job)
expectType<JobRecord>()(jobRecordSchema.parse({}))

const now = Date.now()
expectType<JobRecord | undefined>()(claim(job, { owner: 'worker', leaseMs: 1000 }, now))
expectType<JobRecord | undefined>()(transition(job, { kind: 'delete' }, now))
expectType<boolean[]>()([isAbandoned(job, now), isClaimable(job, now), isTerminal(job), isDue('lapsed', job, now)])
expectType<(number | null)[]>()([waitingSince, lapsesAt, overdueAt, removableAt, deliverableAt].map((at) => at(job)))
expectType<number>()(Math.min(resultBytes(job), recordBytes(job), mostCounted))

const rules: SchedulingRule[] = changedRules([], { kind: 'deployment' }, { state: 'paused' })
expectType<boolean>()(isHeldBack(rules, job, () => 0) || !servesPool(['gpu'], job.pool))
const used = addUsage(noUsage, { jobs: 1 })
expectType<StemworkError | undefined>()(quotaExceeded({ jobs: 1 }, used, 1, dayOf(now)))
expectType<StemworkError[]>()([queueFull(10), alreadyExists(job.id)])

const index = new JobIndex<JobRecord>()
index.set(plainCopy(job))
expectType<IndexedJob>()(indexedPart(job))
expectType<Backlog[]>()(index.backlog(now, mostCounted))
expectType<JobRecord | undefined>()(index.takeNext(now, { rules }))
expectType<Promise<void>>()(index.each({ app: 'me' }, undefined, (each) => matcherOf({ batchName: 'b' })(each)))
expectType<boolean>()(searchWords('a b').every((word) => searchText(job).includes(word)))
// @ts-expect-error: a store that makes no condition of a filter would ignore it
const conditions: ByFilter<string> = { app: (app) => `app = ${app}` }
expectType<string[]>()(eachFilter({ app: 'me' }, conditions))
expectType<StoredDocument | undefined>()(new DocumentMap().get('key', now))
const list = new SortedList<string>((a, b) => (a < b ? -1 : 1))
list.add(checkBlobKey('a/b'))
list.add(checkBlobPrefix('a/'))
const chunks: AsyncIterable<Uint8Array> = abortable(blobChunks('text'), undefined)
expectType<AsyncIterable<Uint8Array>>()(chunks)
const reading: Pick<JobStore, 'get'> = { get: async (id) => index.get(id) }
expectType<Promise<JobRecord | undefined>>()(reading.get('id'))

// @ts-expect-error: a claim is made under a lease
claim(job, { owner: 'worker' }, now)
// @ts-expect-error: a change says which one it is
transition(job, { token: 1 }, now)
// @ts-expect-error: what is not kept by a job cannot be indexed
new JobIndex<{ id: string }>()
