import type { Logger } from '../../core/engine/ports/logger.js'
import type { ApiRequest } from './api-request.js'

/** Segments such as `..` would lead outside the path of the links. */
const prefixForm = /^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9._~-]+)+$/

/** Scheme, host and path prefix of the service as the client sent them, directly or through a trusted proxy. */
export function publicOrigin(request: ApiRequest, direct: URL, trustProxy: boolean): string {
  return trustProxy ? forwardedOrigin(request, direct) : direct.origin
}

const noticed = new WeakSet<Logger>()

/** Warns the operator once of a proxy that the service was not told about: clients could not follow its links. */
export function noticeProxy(request: ApiRequest, direct: URL, logger: Logger): void {
  const seen = forwardedOrigin(request, direct)
  if (seen === direct.origin || noticed.has(logger)) return
  noticed.add(logger)
  logger.warn(
    { forwarded: seen, links: direct.origin },
    'A proxy forwards requests (X-Forwarded-*), but links contain the address that the proxy uses. Set publicUrl ' +
      '(--public-url), or trustProxy if the proxy sets these headers itself.',
  )
}

function forwardedOrigin(request: ApiRequest, direct: URL): string {
  const forwarded = (name: string) => request.headers.get(`x-forwarded-${name}`)?.split(',')[0]?.trim()
  const scheme = forwarded('proto')
  const host = forwarded('host')
  const prefix = forwarded('prefix')
  const knownScheme = scheme === 'https' || scheme === 'http' ? scheme : direct.protocol.slice(0, -1)
  const isHost = host && /^[A-Za-z0-9.:[\]_-]+$/.test(host) && URL.canParse(`http://${host}`)
  const knownHost = isHost ? host : direct.host
  return `${knownScheme}://${knownHost}${prefix && prefixForm.test(prefix) ? prefix : ''}`
}
