import type { Route } from './route.js'

export type Match =
  | { kind: 'route'; route: Route; params: Record<string, string> }
  /** The path exists, but not with this method. */
  | { kind: 'method'; allow: string[] }
  | { kind: 'none' }

interface Entry {
  route: Route
  /** The path's segments. */
  pattern: string[]
  first: string
  /** Where in the path its params are. */
  params: { name: string; index: number; takesRest: boolean }[]
}

/** Finds the route of a request. Fixed segments win over params because the table names them first. */
export class RouteTable {
  readonly routes: readonly Route[]
  /** By first segment, which is fixed in every route, and count of segments; the last count stands for all that are longer. */
  readonly #entries: ReadonlyMap<string, readonly (readonly Entry[])[]>

  constructor(routes: readonly Route[]) {
    this.routes = routes
    const entries = routes.map(newEntry)
    const longest = Math.max(...entries.map(({ pattern }) => pattern.length))
    const firsts = new Set(entries.map(({ first }) => first))
    const fitting = (wanted: string, length: number) =>
      entries.filter(({ pattern, params, first }) => {
        const fitsLength = pattern.length === length || (pattern.length < length && params.at(-1)?.takesRest)
        return first === wanted && fitsLength
      })
    this.#entries = new Map(
      [...firsts].map((first) => [first, Array.from({ length: longest + 2 }, (_, length) => fitting(first, length))]),
    )
  }

  /** @param path below its first `baseLength` characters beginning with a slash, not yet percent-decoded. */
  match(method: string, path: string, baseLength: number): Match {
    const segments = segmentsOf(path, baseLength)
    const byLength = this.#entries.get(segments[0] ?? '')
    if (!byLength) return { kind: 'none' }
    const wanted = method === 'HEAD' ? 'GET' : method
    const fitting = byLength[Math.min(segments.length, byLength.length - 1)] ?? []
    for (const { route, pattern, params } of fitting) {
      if (route.method === wanted && fits(pattern, segments))
        return { kind: 'route', route, params: paramsOf(params, segments) }
    }
    const allow = new Set<string>()
    for (const { route, pattern } of fitting) {
      if (!fits(pattern, segments)) continue
      allow.add(route.method)
      if (route.method === 'GET') allow.add('HEAD')
    }
    return allow.size > 0 ? { kind: 'method', allow: [...allow, 'OPTIONS'] } : { kind: 'none' }
  }
}

function newEntry(route: Route): Entry {
  const pattern = segmentsOf(route.path, 0)
  const params = pattern.flatMap((segment, index) =>
    isParam(segment) ? [{ name: segment.slice(1), index, takesRest: segment[0] === '*' }] : [],
  )
  return { route, pattern, first: pattern[0] ?? '', params }
}

function isParam(segment: string): boolean {
  return segment[0] === ':' || segment[0] === '*'
}

/** The segments below the base, of which there is always one; a slash at the end begins none. */
function segmentsOf(path: string, baseLength: number): string[] {
  const segments: string[] = []
  let from = baseLength + 1
  for (let end = path.indexOf('/', from); end >= 0; end = path.indexOf('/', from)) {
    segments.push(path.slice(from, end))
    from = end + 1
  }
  if (from < path.length || segments.length === 0) segments.push(path.slice(from))
  return segments
}

/** Whether a path of fitting length has the pattern's fixed segments. */
function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.every((expected, index) => expected === segments[index] || isParam(expected))
}

function paramsOf(params: Entry['params'], segments: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {}
  for (const { name, index, takesRest } of params)
    found[name] = segments.slice(index, takesRest ? undefined : index + 1).join('/')
  return found
}
