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

/** The page lies at `<base>/operator`. */
const pageUrl = location.href.replace(/[?#].*$/, '')
const baseUrl = new URL('operator/api/', pageUrl).href
const sessionUrl = new URL('operator/session', pageUrl).href

/** Earlier versions kept the key where scripts can read it. */
sessionStorage.removeItem('stemwork.operator-key')

export class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The key goes into a cookie that no script can read. */
export const signIn = (key: string) => send(sessionUrl, 'POST', { key })

export const signOut = () => send(sessionUrl, 'DELETE')

export type Target = { kind: 'deployment' } | { kind: 'application' | 'workflow'; id: string }
export interface Change {
  state?: RuleState
  maxRunning?: number | null
}

/** Null: as for all. */
export type LimitChange = { [Figure in keyof LimitFigures]: number | null } & {
  /** Of the limits that were changed: others have been set since then, so nothing is. */
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
  delete: (id: string) => ask<undefined>(`job/${encodeURIComponent(id)}/delete`, {}),
  actOnFound: (action: BulkAction, filters: JobFilters) => ask<BulkFacts>(`jobs/${action}`, filters),
  limits: (app: string) => ask<LimitFacts>(limitsPath(app)),
  setLimits: (app: string, change: LimitChange) => ask<LimitFacts>(limitsPath(app), change),
  setWorker: (name: string, state: WorkerState) => ask<Overview>('worker', { name, state }),
  change: (target: Target, change: Change) => ask<Overview>('rule', { target, change }),
}

const limitsPath = (app: string) => `application/${encodeURIComponent(app)}/limits`

export function queryOf(filters: JobFilters): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(filters) as [string, string | undefined][])
    if (value !== undefined && value !== '') query.set(name, value)
  return query.size > 0 ? `?${query.toString()}` : ''
}

function ask<Answer>(path: string, body?: object): Promise<Answer> {
  return send<Answer>(baseUrl + path, body ? 'POST' : 'GET', body)
}

async function send<Answer>(url: string, method: string, body?: object): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: body ? { 'content-type': 'application/json' } : {},
    body: body && JSON.stringify(body),
  }).catch(() => {
    throw new Refusal(0, 'The service cannot be reached. The page tries again by itself.')
  })
  if (response.status === 204) return undefined as Answer
  if (response.ok) return (await response.json()) as Answer
  const problem = (await response.json().catch(() => ({}))) as { message?: string }
  throw new Refusal(response.status, problem.message ?? `The service answered ${response.status}.`)
}
