import { queryOf } from '../elements/use-hash.js'
import type { JobFilters } from './service.js'

/** The page that is shown, kept in the address for links and the back button. */
export type Address = { name: 'overview' } | { name: 'jobs'; filters: JobFilters } | { name: 'job'; id: string }

export function jobsAddress(filters: JobFilters = {}): string {
  return `#/jobs${queryOf(filters)}`
}

export function jobAddress(id: string): string {
  return `#/job/${id}`
}

export function addressOf(hash: string): Address {
  const [path = '', query] = hash.split('?', 2)
  const id = /^#\/job\/([\w-]+)$/.exec(path)?.[1]
  if (id !== undefined) return { name: 'job', id }
  if (path !== '#/jobs') return { name: 'overview' }
  const given = new URLSearchParams(query)
  const filters: JobFilters = {}
  for (const name of ['status', 'workflow', 'app', 'text', 'error'] as const) {
    const value = given.get(name)
    if (value !== null) filters[name] = value
  }
  return { name: 'jobs', filters }
}
