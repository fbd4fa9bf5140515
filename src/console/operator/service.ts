import { ClientError } from '../../client/client-error.js'
import { Connection } from '../../client/connection.js'
import type {
  BulkFacts,
  JobFacts,
  JobPage,
  LimitFacts,
  LimitFigures,
  Overview,
  RuleState,
  WorkerState,
} from '../../http/operator/answers.js'
import { queryOf } from '../elements/use-hash.js'

/** The page lies at `<base>/operator`. No retries: the next overview repeats a failed request. */
const baseUrl = new URL('operator', location.href.replace(/[?#].*$/, '')).href
const connection = new Connection({ baseUrl, retries: 0 })

/** The key goes into a cookie that no script can read. */
export const signIn = (key: string) => connection.send('/session', { method: 'POST', json: { key } })

export const signOut = () => connection.send('/session', { method: 'DELETE' })

export function errorText(error: unknown): string {
  if (ClientError.is(error) && error.code === 'NETWORK') return 'The service cannot be reached. The page keeps trying.'
  return error instanceof Error ? error.message : String(error)
}

export type Target = { kind: 'deployment' } | { kind: 'application' | 'workflow'; id: string }
export interface Change {
  state?: RuleState
  maxRunning?: number | null
}

/** Null restores the default, which all applications share. */
export type LimitChange = { [Figure in keyof LimitFigures]: number | null } & {
  /** Revision of the limits to change. If they were set since then, nothing is changed. */
  revision: string
}

export type BulkAction = 'cancel' | 'retry' | 'delete'

export interface JobFilters {
  status?: string
  workflow?: string
  app?: string
  text?: string
  error?: string
  after?: string
}

export const service = {
  overview: () => ask<Overview>('overview'),
  jobs: (filters: JobFilters) => ask<JobPage>(`job${queryOf(filters)}`),
  job: (id: string) => ask<JobFacts>(`job/${encodeURIComponent(id)}`),
  act: (action: 'cancel' | 'retry', id: string) => ask<JobFacts>(`job/${encodeURIComponent(id)}/${action}`, {}),
  delete: (id: string) => connection.send(`/api/job/${encodeURIComponent(id)}/delete`, { method: 'POST', json: {} }),
  actOnFound: (action: BulkAction, filters: JobFilters) => ask<BulkFacts>(`jobs/${action}`, filters),
  limits: (app: string) => ask<LimitFacts>(limitsPath(app)),
  setLimits: (app: string, change: LimitChange) => ask<LimitFacts>(limitsPath(app), change),
  setWorker: (name: string, state: WorkerState) => ask<Overview>('worker', { name, state }),
  change: (target: Target, change: Change) => ask<Overview>('rule', { target, change }),
}

const limitsPath = (app: string) => `application/${encodeURIComponent(app)}/limits`

function ask<Answer>(path: string, json?: object): Promise<Answer> {
  return connection.value<Answer>(`/api/${path}`, json && { method: 'POST', json })
}
