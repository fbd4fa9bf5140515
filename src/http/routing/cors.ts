import type { ApiRequest } from './api-request.js'
import type { HandlerOptions } from '../options.js'

const exposed =
  'ETag, Link, Content-Disposition, Content-Range, Download-Url, Location, Preference-Applied, RateLimit, ' +
  'RateLimit-Policy, Retry-After, Tus-Resumable, Upload-Expires, Upload-Length, Upload-Offset, X-Request-Id, ' +
  'X-Total-Count'

/** Headers that let a web page of an allowed origin read the response. */
export function corsHeaders(request: ApiRequest, options: HandlerOptions['cors']): Record<string, string> {
  if (!options) return {}
  const origin = allowedOrigin(request, options.origins)
  if (!origin) return { vary: 'Origin' }
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': exposed,
    ...(origin === '*' ? {} : { vary: 'Origin' }),
  }
}

/** The response to a browser's preflight request, besides `corsHeaders`. */
export function preflightHeaders(
  request: ApiRequest,
  options: HandlerOptions['cors'],
  methods: readonly string[],
): Record<string, string> {
  if (!options || !request.headers.has('access-control-request-method') || !allowedOrigin(request, options.origins))
    return {}
  return {
    'access-control-allow-methods': methods.join(', '),
    'access-control-allow-headers':
      'Authorization, Content-Type, Idempotency-Key, If-None-Match, If-Range, Last-Event-ID, Prefer, Range, ' +
      'Tus-Resumable, Upload-Length, Upload-Metadata, Upload-Offset, X-Request-Id',
    'access-control-max-age': String(options.maxAgeSeconds),
  }
}

function allowedOrigin(request: ApiRequest, origins: '*' | string[]): string | undefined {
  if (origins === '*') return '*'
  const origin = request.headers.get('origin')
  return origin !== null && origins.includes(origin) ? origin : undefined
}
