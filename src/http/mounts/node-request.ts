import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { NodeRequest } from 'srvx/node'
import { withoutTinyChunks } from '../../core/engine/fetch/tiny-chunks.js'
import { Problem } from '../routing/problem.js'
import { type ApiRequest, type RequestHeaders, type RequestUrl, urlReader } from '../routing/api-request.js'

/** A host with or without a port. A malformed one would end up in the links that the service makes. */
const hostForm = /^[^\s/?#@\\<>]+$/

/** Paths and queries that a URL does not change. */
const plainTarget = /^(?:\/(?!\.)[\w.~-]*)+(?:\?[\w.~%&=+-]*)?$/

/** Paths that a URL resolves to other paths, which a guard in the host's own code has not seen. */
const pathOfAnother = /^[^?#]*(?:\\|\/(?:\.|%2e){1,2}(?=[/?#]|$))/i

/** Headers of which Node keeps the first value if they are repeated; web requests join the values. */
const keptOnce = new Set([
  'authorization',
  'content-length',
  'content-type',
  'host',
  'if-modified-since',
  'if-unmodified-since',
])

/** Wraps the requests of `node:http` and `node:http2`, nearly all of which have the same host. */
export class NodeRequestReader {
  readonly #urlOf = urlReader()
  #host: string | undefined
  #isEncrypted = false
  #origin = new URL('http://localhost')

  /** @param target the request's whole URL, if a framework has cut something off `request.url`. */
  read(request: IncomingMessage, response: ServerResponse, target: string | undefined): ApiRequest {
    return new NodeApiRequest(this, request, response, target)
  }

  /** @throws TypeError */
  address(request: IncomingMessage, target: string, asked: ApiRequest): RequestUrl {
    const { host } = request.headers
    if (host !== this.#host && host !== undefined && !hostForm.test(host)) throw new TypeError(`not a host: ${host}`)
    if (!plainTarget.test(target)) {
      if (pathOfAnother.test(target)) throw new TypeError(`a path with "." or ".." in it: ${target}`)
      return this.#urlOf(asked.web.url)
    }
    const isEncrypted = (request.socket as TLSSocket).encrypted === true
    if (host === undefined || host !== this.#host || isEncrypted !== this.#isEncrypted) {
      this.#origin = this.#urlOf(asked.web.url).origin
      this.#host = host
      this.#isEncrypted = isEncrypted
    }
    const mark = target.indexOf('?')
    return mark < 0
      ? { origin: this.#origin, pathname: target, search: '' }
      : { origin: this.#origin, pathname: target.slice(0, mark), search: target.slice(mark) }
  }
}

/** Values are computed on demand. */
class NodeApiRequest implements ApiRequest, RequestHeaders {
  readonly method: string
  readonly closesBody = true
  readonly #reader: NodeRequestReader
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #target: string | undefined
  #web: Request | undefined
  #body: ReadableStream<Uint8Array> | undefined
  #signal: AbortSignal | undefined

  constructor(
    reader: NodeRequestReader,
    request: IncomingMessage,
    response: ServerResponse,
    target: string | undefined,
  ) {
    this.method = request.method ?? 'GET'
    this.#reader = reader
    this.#request = request
    this.#response = response
    this.#target = target
  }

  get headers(): RequestHeaders {
    return this
  }

  get(name: string): string | null {
    const value = this.#request.headers[name]
    if (value === undefined) return null
    const isWhole = typeof value === 'string' && !(keptOnce.has(name) && isRepeated(name, this.#request.rawHeaders))
    return isWhole ? value : this.web.headers.get(name)
  }

  has(name: string): boolean {
    return this.#request.headers[name] !== undefined
  }

  address(): RequestUrl {
    return this.#reader.address(this.#request, this.#target ?? this.#request.url ?? '/', this)
  }

  get body(): ReadableStream<Uint8Array> | null {
    if (this.method === 'GET' || this.method === 'HEAD') return null
    return (this.#body ??= ReadableStream.from<Uint8Array>(withoutTinyChunks(this.#request, tinyChunks)))
  }

  get bodyUsed(): boolean {
    return Readable.isDisturbed(this.#request)
  }

  get remoteAddress(): string | undefined {
    // An aborted request no longer has a socket.
    return (this.#request as Partial<IncomingMessage>).socket?.remoteAddress
  }

  get signal(): AbortSignal {
    return this.#web?.signal ?? (this.#signal ??= signalOf(this.#request, this.#response))
  }

  get web(): Request {
    if (this.#web) return this.#web
    const web = webRequest(this.#request, this.#response, this.#target)
    // Also for handlers of the host that pass this request on to ours.
    Object.defineProperties(web, {
      body: { get: () => this.body },
      bodyUsed: { get: () => this.bodyUsed },
    })
    return (this.#web = web)
  }
}

function tinyChunks(): Problem {
  return new Problem(
    'BAD_INPUT',
    'The chunks of the body have a few bytes each. Send larger ones, or the length of the body and no chunks.',
    { headers: { connection: 'close' } },
  )
}

/** Fires if the client disconnects before it has the whole answer. */
function signalOf(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  const onClose = () => {
    if (request.errored || !response.writableEnded) gone.abort(request.errored ?? undefined)
  }
  response.once('close', onClose)
  if (response.destroyed || (request.destroyed && !request.complete)) onClose()
  return gone.signal
}

function webRequest(request: IncomingMessage, response: ServerResponse, target: string | undefined): Request {
  const web = new NodeRequest({ req: request, res: response })
  if (target === undefined) return web
  const { url } = request
  request.url = target
  // The bridge reads `request.url` once, at the first access: this access fixes the value.
  void web.url
  request.url = url
  return web
}

function isRepeated(name: string, rawHeaders: readonly string[]): boolean {
  let times = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index]
    if (raw?.length === name.length && raw.toLowerCase() === name) times++
  }
  return times > 1
}
