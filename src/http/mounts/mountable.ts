import { invalidOptions } from '../../core/engine/errors.js'
import { type ApiAnswer, toResponse } from '../routing/answer.js'
import { type ApiRequest, webRequestReader } from '../routing/api-request.js'

/** Facts about a request that only its mount knows. */
export interface MountContext {
  /** Start of the URL's path that belongs to the host, for example `/media` for a mount under it. */
  mountPath?: string
  /** Whether the host has already read the body. */
  bodyRead?: boolean
  /** The body as the host has read it, if available: the value of a JSON body, or the bytes. */
  parsedBody?: unknown
}

/** Answers a request. Never rejects: every failure is a response. */
export type Handler = (request: Request, context?: MountContext) => Promise<Response>

/** Like `Handler`, without web requests and responses. */
export type Answer = (request: ApiRequest, context: MountContext) => Promise<ApiAnswer>

const plainAnswer = Symbol.for('stemwork.plain-answer')

const traits = Symbol.for('stemwork.handler-traits')

interface HandlerTraits {
  /** Whether some answers are WebSockets. */
  readonly takesUpgrades?: boolean
  /** Present if requests need no key, and none is expected from a proxy. */
  readonly keyless?: { readonly publicUrl?: string }
}

/** A handler that mounts can call without creating web requests, for servers that have none. */
export function mountable(answer: Answer, own: HandlerTraits): Handler {
  const read = webRequestReader()
  const handler: Handler = async (request, context = {}) => toResponse(await answer(read(request), context))
  return Object.assign(handler, { [plainAnswer]: answer, [traits]: own })
}

export function traitsOf(handler: Handler & { [traits]?: HandlerTraits }): HandlerTraits {
  return handler[traits] ?? {}
}

/** `undefined` for a handler of the host, for example a wrapper around ours, which only takes web requests. */
export function plainAnswerOf(handler: Handler & { [plainAnswer]?: Answer }): Answer | undefined {
  return handler[plainAnswer]
}

/** @throws StemworkError `INVALID_OPTIONS` if it is not a handler, for example the engine itself. */
export function checkHandler(handler: unknown): void {
  if (typeof handler === 'function') return
  throw invalidOptions(
    'A mount needs the handler that createHandler(engine) returns, but got ' +
      `${handler === null ? 'null' : typeof handler}.`,
  )
}

/**
 * The path without a trailing slash; empty: the root.
 *
 * @throws StemworkError `INVALID_OPTIONS` for an impossible path.
 */
export function mountPathOf({ path = '' }: { path?: string }): string {
  if (typeof path === 'string' && /^(\/.*)?$/.test(path)) return path.replace(/\/+$/, '')
  throw invalidOptions(`The path of a mount must begin with "/", for example "/v1", but is ${JSON.stringify(path)}.`)
}
