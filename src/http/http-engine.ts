import type { JobEngine } from '../core/engine/engine.js'

/** What the HTTP side needs of an engine, and nothing more. */
export type HttpEngine = Pick<
  JobEngine,
  | 'submit'
  | 'get'
  | 'list'
  | 'count'
  | 'resultBytes'
  | 'place'
  | 'peaks'
  | 'growingResult'
  | 'cancel'
  | 'retry'
  | 'submitBatch'
  | 'batch'
  | 'bulk'
  | 'waiting'
  | 'pools'
  | 'delete'
  | 'workflows'
  | 'blobs'
  | 'applications'
  | 'options'
  | 'on'
  | 'off'
  | 'health'
>
