/** The parts of a request's address that are read. */
export interface RequestUrl {
  /** Its scheme and host. */
  origin: URL
  pathname: string
  /** Empty, or begins with a question mark. */
  search: string
}

const parts = /^(https?:\/\/[^/?#]+)(\/[^?#]*)(\?[^#]*)?/

/**
 * Returns a parser for normalized addresses of requests. Only the origin needs a `URL`, and nearly all requests have
 * the same one.
 */
export function urlReader(): (address: string) => RequestUrl {
  let known = { text: '', origin: new URL('http://localhost') }
  // Throws a TypeError if the address is not valid.
  return (address) => {
    const [, text, pathname, search = ''] = parts.exec(address) ?? []
    if (text === undefined || pathname === undefined) {
      const { origin, pathname, search } = new URL(address)
      return { origin: new URL(origin), pathname, search }
    }
    if (text !== known.text) known = { text, origin: new URL(text) }
    return { origin: known.origin, pathname, search }
  }
}

/** Reads one header. Names are in lower case. */
export interface RequestHeaders {
  get(name: string): string | null
  has(name: string): boolean
}

/** The parts of a request that the service reads, from a web `Request` or, cheaper, from a server's own objects. */
export interface ApiRequest {
  readonly method: string
  readonly headers: RequestHeaders
  /** @throws TypeError if the address is not valid. */
  address(): RequestUrl
  readonly body: ReadableStream<Uint8Array> | null
  readonly bodyUsed: boolean
  /** Address of the client or of the nearest proxy; `undefined` if the host's server does not provide it. */
  readonly remoteAddress: string | undefined
  /** Whether it can become a WebSocket, and asks to. */
  readonly isUpgrade?: boolean
  /** Fires when the client goes away. */
  readonly signal: AbortSignal
  /** Whether the server then also closes the body of the answer, so that a stream need not listen to the signal. */
  readonly closesBody?: boolean
  /** This request as a web request, for the host's code. */
  readonly web: Request
}

/** Wraps web requests, nearly all of which have the same origin. */
export function webRequestReader(): (web: Request) => ApiRequest {
  const urlOf = urlReader()
  return (web) => ({
    method: web.method,
    headers: web.headers,
    address: () => urlOf(web.url),
    get body() {
      return web.body
    },
    get bodyUsed() {
      return web.bodyUsed
    },
    // Servers on srvx provide it this way.
    remoteAddress: (web as Request & { ip?: string }).ip,
    get signal() {
      return web.signal
    },
    web,
  })
}
