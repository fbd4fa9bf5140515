import { StemworkError } from '../../core/engine/errors.js'
import { type ApiAnswer, toResponse } from '../routing/answer.js'
import { type ApiRequest, WebRequestReader } from '../routing/api-request.js'

/** What a mount knows and a `Request` does not say. */
export interface MountContext {
  /** Front of the URL's path that belongs to the host, for example `/media` for a mount that is put there. */
  mountPath?: string
  /** True if something before us has read the body. */
  bodyRead?: boolean
  /** What that has made of it, if it has left it somewhere: the value of a JSON body, or the bytes. */
  parsedBody?: unknown
}

/** Answers a request. Never rejects: every failure is an answer. */
export type Handler = (request: Request, context?: MountContext) => Promise<Response>

/** The same before it is put into web terms. */
export type Answer = (request: ApiRequest, context: MountContext) => Promise<ApiAnswer>

const plainAnswer = Symbol.for('stemwork.plain-answer')

/** A handler that mounts of servers which have no web requests can ask without the cost of making some. */
export function mountable(answer: Answer): Handler {
  const requests = new WebRequestReader()
  const handler: Handler = async (request, context = {}) => toResponse(await answer(requests.read(request), context))
  return Object.assign(handler, { [plainAnswer]: answer })
}

/** `undefined` for a handler of the host's own, for example one that is put around ours: it works by web requests alone. */
export function plainAnswerOf(handler: Handler & { [plainAnswer]?: Answer }): Answer | undefined {
  return handler[plainAnswer]
}

/** @throws StemworkError `INVALID_OPTIONS` for what is no handler, for example the engine itself. */
export function checkHandler(handler: unknown): void {
  if (typeof handler === 'function') return
  throw new StemworkError(
    'INVALID_OPTIONS',
    `A mount needs the handler that createHandler(engine) returns, but got ${handler === null ? 'null' : typeof handler}.`,
  )
}

/**
 * The path without a slash at its end; empty: the root.
 *
 * @throws StemworkError `INVALID_OPTIONS` for one that no request could have.
 */
export function mountPathOf({ path = '' }: { path?: string }): string {
  if (typeof path === 'string' && /^(\/.*)?$/.test(path)) return path.replace(/\/+$/, '')
  throw new StemworkError(
    'INVALID_OPTIONS',
    `The path of a mount must begin with "/", for example "/v1", but is ${JSON.stringify(path)}.`,
  )
}
