// Code that the adapters of this package share, for adapters outside it: the rules of jobs, and structures that apply
// them in memory.
export { StemworkError } from '../core/engine/errors.js'

// The state machine: from a record to the next one.
export {
  claim,
  type ClaimRequest,
  type HeldClaim,
  isClaimable,
  type JobChange,
  transition,
  type WebhookMessage,
} from '../core/engine/job/transitions.js'
export { isTerminal, type JobRecord, jobRecordSchema, type JobStatus } from '../core/engine/job/job.js'
export { type JobRequest, newJob } from '../core/engine/job/new-job.js'

// Rules of claims, and limits of what an application may submit.
export {
  changedRules,
  isHeldBack,
  type RuleChange,
  type RuleTarget,
  type SchedulingRule,
} from '../core/engine/job/scheduling.js'
export { servesPool } from '../core/engine/job/pool.js'
export { addUsage, dayOf, noUsage, type Quota, quotaExceeded, type Usage } from '../core/engine/job/quota.js'
export { alreadyExists, queueFull } from '../core/engine/job/queue-limit.js'

// The filters of lists: a table for each of them, so that a store that ignores one does not compile.
export { type ByFilter, eachFilter, type FilteredJob, matcherOf } from '../core/engine/ports/job-query.js'
export { searchText, searchWords } from '../core/engine/job/search-text.js'

// The times and sizes that a store keeps in indexes.
export {
  deliverableAt,
  isAbandoned,
  lapsesAt,
  overdueAt,
  removableAt,
  waitingSince,
} from '../core/engine/job/due-times.js'
export { isDue } from '../adapters/stores/shared/is-due.js'
export { recordBytes } from '../core/engine/job/record-bytes.js'
export { resultBytes } from '../core/engine/job/result-bytes.js'
export { mostCounted } from '../core/engine/ports/job-store.js'

// The same in memory, for stores that one process writes.
export { type IndexedJob, indexedPart } from '../adapters/stores/shared/indexed-job.js'
export { JobIndex, type Wanted } from '../adapters/stores/shared/job-index.js'
export { type DocumentEntry, DocumentMap } from '../adapters/stores/shared/document-map.js'
export { SortedList } from '../adapters/stores/shared/sorted-list.js'
export { plainCopy } from '../adapters/stores/shared/plain-copy.js'

// Keys and contents of blobs.
export { checkBlobKey, checkBlobPrefix } from '../core/engine/job/blob-keys.js'
export { abortable } from '../adapters/blobs/shared/abortable-source.js'
export { blobChunks } from '../adapters/blobs/shared/blob-chunks.js'

// The ports.
export type { ApiKey, Application, ApplicationStore } from '../core/engine/ports/application-store.js'
export type * from '../core/engine/ports/blob-store.js'
export type * from '../core/engine/ports/document-store.js'
export type * from '../core/engine/ports/job-queue.js'
export type * from '../core/engine/ports/job-store.js'
export type * from '../core/engine/ports/runner.js'
export type { Span, SpanAttributes, SpanOrder, Tracing } from '../core/engine/ports/tracing.js'
