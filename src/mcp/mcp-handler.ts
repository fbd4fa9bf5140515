import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { Handler } from '../http/mounts/mountable.js'
import { jsonOf } from '../http/mounts/request-json.js'
import { createMcpServer } from './mcp-server.js'

export interface McpHandlerOptions {
  /** Path at which the host has mounted the service's handler, for example `/media`. Default: the root. */
  mountPath?: string
  /** The handler's own `basePath`, for example `/v1`. Default: none. */
  basePath?: string
  /**
   * Origins of web pages that may call the handler, such as `https://agents.example.org`. Requests of other pages are
   * refused. Default: none.
   */
  origins?: readonly string[]
}

/** Headers by which a service may identify its caller. */
const passedOn = [
  'authorization',
  'cookie',
  'traceparent',
  'tracestate',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-prefix',
  'x-forwarded-proto',
]

/**
 * The Model Context Protocol over HTTP (Streamable HTTP, without sessions) for a service, as a handler that the mounts
 * take. A request carries the key of an application as for the service itself, raw or after `Bearer`, and can do what
 * that key can: each tool is a request to the service's handler.
 *
 * @param handler what `createHandler(engine)` returns
 * @example
 * app.use('/v1', expressMount(handler))
 * app.use('/mcp', expressMount(createMcpHandler(handler, { mountPath: '/v1' })))
 */
export function createMcpHandler(handler: Handler, options: McpHandlerOptions = {}): Handler {
  const { mountPath = '', basePath = '', origins = [] } = options

  return async (request, context = {}) => {
    const origin = request.headers.get('origin')
    if (origin !== null && !origins.includes(origin)) {
      return refusal(403, 'Web pages of this origin may not call it. The operator can allow the origin.')
    }
    if (request.method !== 'POST') {
      return refusal(405, 'There are no sessions here: send each message with POST.', { allow: 'POST' })
    }
    const ask: typeof fetch = (input, init) => handler(inner(input, init), { mountPath })
    const baseUrl = new URL(request.url).origin + mountPath + basePath
    // A wrong key is reported before the protocol begins, as clients expect.
    const known = await ask(`${baseUrl}/application`, { signal: request.signal })
    if (!known.ok) return known
    const { id: app } = (await known.json()) as { id: string }
    const read = await jsonOf(request, context, { app, requestId: known.headers.get('x-request-id') ?? '' })
    if ('refused' in read) return read.refused
    const messages: unknown[] = Array.isArray(read.value) ? read.value : [read.value]
    const repeated = repeatedId(messages)
    if (repeated !== undefined)
      return refusal(400, `Two of these messages have the id ${repeated}. Give each request an id of its own.`)
    // Each further message counts as one request.
    for (let more = messages.length - 1; more > 0; more--) {
      const counted = await ask(`${baseUrl}/application`, { signal: request.signal })
      if (!counted.ok) return counted
    }

    const server = createMcpServer({ baseUrl, fetch: ask })
    const transport = new WebStandardStreamableHTTPServerTransport()
    await server.connect(transport)
    request.signal.addEventListener('abort', () => void server.close(), { once: true })
    return await transport.handleRequest(request, { parsedBody: read.value })

    function inner(input: string | URL | Request, init: RequestInit = {}): Request {
      const made = new Request(input, init)
      for (const name of passedOn) {
        const value = request.headers.get(name)
        if (value !== null) made.headers.set(name, value)
      }
      // The address by which wrong keys are counted, as servers on srvx provide it.
      return Object.assign(made, { ip: (request as Request & { ip?: string }).ip })
    }
  }
}

/** Returns an id that several messages have: the protocol's library would answer only one of them. */
function repeatedId(messages: readonly unknown[]): string | undefined {
  const ids = new Set<string>()
  for (const message of messages) {
    const { id } = (message ?? {}) as { id?: unknown }
    const text = JSON.stringify(id) as string | undefined
    if (text === undefined) continue
    if (ids.has(text)) return text
    ids.add(text)
  }
  return undefined
}

function refusal(status: number, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null }, { status, headers })
}
