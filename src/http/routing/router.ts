import type { Logger } from '../../core/engine/ports/logger.js'
import type { HandlerOptions } from '../options.js'
import type { ApiRequest, RequestUrl } from './api-request.js'
import { Problem } from './problem.js'
import type { Route } from './route.js'
import { type Match, routeTable } from './route-table.js'

/** The match of a request, and the base path under which it was found. */
export interface Destination {
  url: RequestUrl
  match: Match
  /** Path in front of the routes, mount path included. */
  basePath: string
  /** Present for a deprecated base path. */
  deprecated?: HandlerOptions['deprecated'][string]
}

/** Finds routes below the base paths of the service. */
export function createLocator(
  routes: readonly Route[],
  { basePath: bases, deprecated }: Pick<HandlerOptions, 'basePath' | 'deprecated'>,
  logger: Logger,
) {
  const table = routeTable(routes)
  let isMisplacedTold = false

  const find = (method: string, url: RequestUrl, mountPath: string): Destination => {
    for (const base of bases) {
      const basePath = mountPath + base
      if (!isBelow(url.pathname, basePath)) continue
      return { url, match: table.match(method, url.pathname, basePath.length), basePath, deprecated: deprecated[base] }
    }
    const found = isBelow(url.pathname, mountPath) ? table.match(method, url.pathname, mountPath.length) : undefined
    const match: Match = found?.kind === 'route' && found.route.atRoot ? found : { kind: 'none' }
    return { url, match, basePath: mountPath + bases[0] }
  }

  /** Warns the host, once, of a request for one of our routes under another path: the mount path is probably wrong. */
  const tellMisplaced = ({ url: { pathname: path }, basePath }: Destination) => {
    if (isMisplacedTold || !table.hasRouteAtEndOf(path)) return
    isMisplacedTold = true
    logger.warn(
      { path, expected: `${basePath}/...` },
      'A request for a route of this service used another path. Its paths begin with the path of the mount ' +
        '(Express and Fastify report it; for the other mounts, set `path`), followed by `basePath` of ' +
        'createHandler. Set each part once.',
    )
  }

  /** @throws Problem `BAD_INPUT` for an invalid address */
  return (request: ApiRequest, mountPath: string): Destination => {
    const destination = find(request.method, readAddress(request), escaped(mountPath))
    if (destination.match.kind === 'none') tellMisplaced(destination)
    return destination
  }
}

function readAddress(request: ApiRequest): RequestUrl {
  try {
    return request.address()
  } catch (cause) {
    const message =
      'The address of the request is not valid. Check the Host header, and that no segment of the path is "." or "..".'
    throw new Problem('BAD_INPUT', message, { cause })
  }
}

/** Encodes the path as in a URL: frameworks report that of the request line, for example with a quotation mark. */
function escaped(mountPath: string): string {
  return /^[\w/.~%-]*$/.test(mountPath) ? mountPath : new URL(`http://localhost${mountPath}`).pathname
}

function isBelow(path: string, base: string): boolean {
  return path.startsWith(base) && (path.length === base.length || path[base.length] === '/')
}
