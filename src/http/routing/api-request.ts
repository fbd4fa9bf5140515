import { type RequestUrl, RequestUrlReader } from './request-url.js'

/** Reads one header. Names are in lower case. */
export interface RequestHeaders {
  get(name: string): string | null
  has(name: string): boolean
}

/** What the service reads of a request, whatever brought it: a web `Request`, or a server's own parts without the cost of one. */
export interface ApiRequest {
  readonly method: string
  readonly headers: RequestHeaders
  /** @throws TypeError if the address is not valid. */
  address(): RequestUrl
  readonly body: ReadableStream<Uint8Array> | null
  readonly bodyUsed: boolean
  /** Address of the client or of the nearest proxy; `undefined` where the host's server does not tell it. */
  readonly remoteAddress: string | undefined
  /** Fires when the client goes away. */
  readonly signal: AbortSignal
  /** The same as a web request, for code of the host's. */
  readonly web: Request
}

/** Makes requests of web requests, nearly all of which have the same origin. */
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
      // Servers on srvx tell it so.
      remoteAddress: (web as Request & { ip?: string }).ip,
      get signal() {
        return web.signal
      },
      web,
    }
  }
}
