import type { JobEngine } from '../core/engine/engine.js'

/** The part of an engine that the HTTP side needs: everything but its role as a worker. */
export type HttpEngine = Omit<
  JobEngine,
  'run' | 'runOnce' | 'start' | 'ready' | 'sweep' | 'sendWebhooks' | 'close' | 'usage'
>
