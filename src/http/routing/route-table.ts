import { addRoute, createRouter, findRoute } from 'rou3'
import type { Route } from './route.js'

export type Match =
  | { kind: 'route'; route: Route; params: Record<string, string> }
  /** The path exists, but not with this method. */
  | { kind: 'method'; allow: string[] }
  | { kind: 'none' }

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const satisfies Route['method'][]

/** Finds the route of a request. Fixed segments win over params. */
export class RouteTable {
  readonly routes: readonly Route[]
  readonly #router = createRouter<Route>()

  constructor(routes: readonly Route[]) {
    this.routes = routes
    for (const route of routes) addRoute(this.#router, route.method, route.path, route)
  }

  /** Whether a path ends like one of our routes, for example `/v1/job` and `/media/job`. */
  hasRouteAtEndOf(path: string): boolean {
    for (let at = path.indexOf('/', 1); at !== -1; at = path.indexOf('/', at + 1))
      if (this.match('GET', path, at).kind !== 'none') return true
    return false
  }

  /** @param path below its first `baseLength` characters beginning with a slash, not yet percent-decoded. */
  match(method: string, path: string, baseLength: number): Match {
    const below = path.slice(baseLength) || '/'
    const found = findRoute(this.#router, method === 'HEAD' ? 'GET' : method, below)
    if (found) return { kind: 'route', route: found.data, params: found.params ?? {} }
    const allow = methods.filter((other) => findRoute(this.#router, other, below))
    if (allow.length === 0) return { kind: 'none' }
    return {
      kind: 'method',
      allow: [...allow.flatMap((other) => (other === 'GET' ? ['GET', 'HEAD'] : [other])), 'OPTIONS'],
    }
  }
}
