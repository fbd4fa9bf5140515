import type { ApiRequest } from './api-request.js'

/** Segments like `..` would lead out of the path that the links are below. */
const prefixForm = /^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9._~-]+)+$/

/** Scheme, host and cut-off path of the service as the client wrote them, by way of a trusted proxy or directly. */
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
