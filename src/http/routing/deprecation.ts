import type { HandlerOptions } from '../options.js'

/** `Deprecation` (RFC 9745) and `Sunset` (RFC 8594). */
export function deprecationHeaders({
  since,
  sunset,
  link,
}: HandlerOptions['deprecated'][string]): Record<string, string> {
  return {
    deprecation: `@${Math.floor(Date.parse(since) / 1000)}`,
    ...(sunset === undefined ? {} : { sunset: new Date(sunset).toUTCString() }),
    ...(link === undefined ? {} : { link: `<${link}>; rel="deprecation"` }),
  }
}
