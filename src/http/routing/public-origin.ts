import type { ApiRequest } from './api-request.js'

/** Segments such as `..` would lead outside the path of the links. */
const prefixForm = /^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9._~-]+)+$/

/** Scheme, host and path prefix of the service as the client sent them, directly or through a trusted proxy. */
export function publicOrigin(request: ApiRequest, direct: URL, trustProxy: boolean): string {
  if (!trustProxy) return direct.origin
  const forwarded = (name: string) => request.headers.get(`x-forwarded-${name}`)?.split(',')[0]?.trim()
  const scheme = forwarded('proto')
  const host = forwarded('host')
  const prefix = forwarded('prefix')
  const knownScheme = scheme === 'https' || scheme === 'http' ? scheme : direct.protocol.slice(0, -1)
  const knownHost = host && /^[A-Za-z0-9.:[\]_-]+$/.test(host) ? host : direct.host
  return `${knownScheme}://${knownHost}${prefix && prefixForm.test(prefix) ? prefix : ''}`
}
