import type { JobStatus } from '../client/client.js'
import { queryOf, useHash } from './elements/use-hash.js'

/** Filters of the list, kept in the address, so that a reload, a link and the back button restore them. */
export interface ListFilters {
  status?: JobStatus
  days?: number
  workflow?: string
  batch?: string
  search?: string
}

/** The page that is shown. */
export type Route =
  | { name: 'library'; filters: ListFilters }
  /** While a song is being uploaded, its id is the number of its upload. */
  | { name: 'job'; id: string; tab: 'player' | 'details' }
  | { name: 'keys' }

const statuses: readonly JobStatus[] = ['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED']

export function jobAddress(id: string, tab: 'player' | 'details' = 'player'): string {
  return `#/job/${id}${tab === 'details' ? '/details' : ''}`
}

export function libraryAddress(filters: ListFilters = {}): string {
  return `#/${queryOf(filters)}`
}

export function useRoute(): Route {
  return useHash(routeOf)
}

/** The part after `#job=` in a link to one song. */
export function useJobLink(): string | undefined {
  return useHash((hash) => /^#job=(.+)$/.exec(hash)?.[1])
}

export function routeOf(hash: string): Route {
  const [path = '', query] = hash.split('?', 2)
  const [, id, details] = /^#\/job\/([0-9a-f-]+)(\/details)?$/i.exec(path) ?? []
  if (id !== undefined) return { name: 'job', id, tab: details ? 'details' : 'player' }
  if (path === '#/keys') return { name: 'keys' }
  return { name: 'library', filters: filtersOf(new URLSearchParams(query)) }
}

function filtersOf(query: URLSearchParams): ListFilters {
  const days = Number(query.get('days'))
  return {
    status: statuses.find((status) => status === query.get('status')),
    days: days > 0 ? days : undefined,
    workflow: query.get('workflow') ?? undefined,
    batch: query.get('batch') ?? undefined,
    search: query.get('search') ?? undefined,
  }
}
