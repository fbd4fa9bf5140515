import { addRoute, createRouter, findRoute } from 'rou3'
import type { Route } from './route.js'

export type Match =
  | { kind: 'route'; route: Route; params: Readonly<Record<string, string>> }
  /** The path exists, but not with this method. */
  | { kind: 'method'; allow: string[]; optionsHeaders?: Record<string, string> }
  | { kind: 'none' }

/** Bounds of the memory for remembered paths: their number and their length, which no route exceeds. */
const maxRecent = { paths: 1000, length: 200 }

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const satisfies Route['method'][]

/** Finds the route of a request. Fixed segments win over params, whatever the method. */
export function routeTable(routes: readonly Route[]) {
  const router = createRouter<Route>()
  for (const route of routes) addRoute(router, route.method, route.path, route)
  /** Recently matched routes, by method and path: a client that polls a job sends the same path each time. */
  const recent = new Map<string, Match>()

  const remember = (target: string, match: Match) => {
    if (target.length > maxRecent.length) return match
    if (recent.size >= maxRecent.paths) recent.clear()
    recent.set(target, match)
    return match
  }

  /** @param path below its first `baseLength` characters beginning with a slash, not yet percent-decoded. */
  const match = (method: string, path: string, baseLength: number): Match => {
    const below = path.slice(baseLength) || '/'
    const target = `${method} ${below}`
    const known = recent.get(target)
    if (known) return known
    const all = methods.flatMap((each) => findRoute(router, each, below) ?? [])
    // A fixed segment is one resource, and a param in its place another: DELETE /job/events deletes no job.
    const fewest = Math.min(...all.map(({ data }) => paramsIn(data.path)))
    const closest = all.filter(({ data }) => paramsIn(data.path) === fewest)
    const found = closest.find(({ data }) => data.method === (method === 'HEAD' ? 'GET' : method))
    if (found) return remember(target, { kind: 'route', route: found.data, params: found.params ?? {} })
    const allow = closest.map(({ data }) => data.method)
    if (allow.length === 0) return { kind: 'none' }
    return {
      kind: 'method',
      allow: [...allow.flatMap((other) => (other === 'GET' ? ['GET', 'HEAD'] : [other])), 'OPTIONS'],
      optionsHeaders: closest.find(({ data }) => data.optionsHeaders)?.data.optionsHeaders,
    }
  }

  /** Whether a path ends like one of our routes, for example `/v1/job` and `/media/job`. */
  const hasRouteAtEndOf = (path: string) => {
    // Checking each end of 16 KiB of slashes would take seconds.
    if (path.length > maxRecent.length) return false
    for (let at = path.indexOf('/', 1); at !== -1; at = path.indexOf('/', at + 1))
      if (match('GET', path, at).kind !== 'none') return true
    return false
  }

  return { match, hasRouteAtEndOf }
}

function paramsIn(path: string): number {
  return path.split(':').length - 1
}
