import { type RequestUrl, RequestUrlReader } from './request-url.js'

/** Reads one header. Names are in lower case. */
export interface RequestHeaders {
  get(name: string): string | null
  has(name: string): boolean
}

/** The parts of a request that the service reads, from a web `Request` or cheaper from a server's own objects. */
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
  /** Whether the server then closes the body of the answer, too, so that a stream need not listen to the signal. */
  readonly closesBody?: boolean
  /** The same as a web request, for the host's code. */
  readonly web: Request
}

/** Wraps web requests, nearly all of which have the same origin. */
export class WebRequestReader {
  readonly #urls = new RequestUrlReader()

  read(web: Request): ApiRequest {
    const urls = this.#urls
    return {
      method: web.method,
      headers: web.headers,
      address: () => urls.read(web.url),
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
    }
  }
}
