import { addRoute, createRouter, findRoute } from 'rou3'
import type { Route } from './route.js'

export type Match =
  | { kind: 'route'; route: Route; params: Readonly<Record<string, string>> }
  /** The path exists, but not with this method. */
  | { kind: 'method'; allow: string[]; optionsHeaders?: Record<string, string> }
  | { kind: 'none' }

/** At most a thousand paths are kept, none longer than routes are: both bound the memory. */
const maxRecent = { paths: 1000, length: 200 }

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const satisfies Route['method'][]

/** Finds the route of a request. Fixed segments win over params, whatever the method. */
export class RouteTable {
  readonly routes: readonly Route[]
  readonly #router = createRouter<Route>()
  /** Routes that were found lately, by method and path: a client that polls a job sends the same one each time. */
  readonly #recent = new Map<string, Match>()

  constructor(routes: readonly Route[]) {
    this.routes = routes
    for (const route of routes) addRoute(this.#router, route.method, route.path, route)
  }

  /** Whether a path ends like one of our routes, for example `/v1/job` and `/media/job`. */
  hasRouteAtEndOf(path: string): boolean {
    // For 16 KiB of slashes, looking at each end of the path would take seconds.
    if (path.length > maxRecent.length) return false
    for (let at = path.indexOf('/', 1); at !== -1; at = path.indexOf('/', at + 1))
      if (this.match('GET', path, at).kind !== 'none') return true
    return false
  }

  /** @param path below its first `baseLength` characters beginning with a slash, not yet percent-decoded. */
  match(method: string, path: string, baseLength: number): Match {
    const below = path.slice(baseLength) || '/'
    const target = `${method} ${below}`
    const recent = this.#recent.get(target)
    if (recent) return recent
    const all = methods.flatMap((each) => findRoute(this.#router, each, below) ?? [])
    // A fixed segment is one resource, and a param in its place another: DELETE /job/events deletes no job.
    const fewest = Math.min(...all.map(({ data }) => paramsIn(data.path)))
    const closest = all.filter(({ data }) => paramsIn(data.path) === fewest)
    const found = closest.find(({ data }) => data.method === (method === 'HEAD' ? 'GET' : method))
    if (found) return this.#remember(target, { kind: 'route', route: found.data, params: found.params ?? {} })
    const allow = closest.map(({ data }) => data.method)
    if (allow.length === 0) return { kind: 'none' }
    return {
      kind: 'method',
      allow: [...allow.flatMap((other) => (other === 'GET' ? ['GET', 'HEAD'] : [other])), 'OPTIONS'],
      optionsHeaders: closest.find(({ data }) => data.optionsHeaders)?.data.optionsHeaders,
    }
  }

  #remember(target: string, match: Match): Match {
    if (target.length > maxRecent.length) return match
    if (this.#recent.size >= maxRecent.paths) this.#recent.clear()
    this.#recent.set(target, match)
    return match
  }
}

function paramsIn(path: string): number {
  return path.split(':').length - 1
}
