import type { z } from 'zod'
import { checkInput } from '../../core/engine/workflow/check-input.js'
import { fieldIssues, issuesText } from '../../core/engine/job/field-issues.js'
import type { RouteAnswer } from './answer.js'
import type { Call, KeyedCall } from './call.js'
import { readJson } from './json-body.js'
import { Problem, type ProblemCode } from './problem.js'
import type { RatePolicy } from './rate-limit.js'

/** `key`: needs an API key. `link`: needs a signature in the query. `open`: public. */
export type Access = 'key' | 'link' | 'open'

export interface AnswerDescription {
  description: string
  /** For a response without a body. */
  status?: 200 | 201 | 204
  schema?: z.ZodType
  contentType?: string
  /** Forms of the same by content type, for clients that ask for them. */
  otherContent?: Record<string, { schema: Record<string, unknown> }>
  headers?: Record<string, string>
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

interface RouteFacts {
  /** Unique name, for the OpenAPI document and metrics. */
  operation: string
  /** Which of the caller's rates it counts against. Default: `other`. */
  bucket?: RatePolicy
  /** Also open to holders of a link to the job that the param `id` names. */
  isOpenToLinks?: true
  /**
   * The handler begins to read while a key that has worked before is checked. Before any change, it awaits
   * `call.requireAllowed()`.
   */
  readsAhead?: true
  /** Members and values that a valid JSON body may have besides those of `params`. Default: 256. */
  bodyEntries?: number
  /** Headers of the answer to OPTIONS. */
  optionsHeaders?: Record<string, string>
  /** Answers only requests to upgrade to a WebSocket. */
  isWebSocket?: true
  /** Also available at the root of the mount, where infrastructure expects it. */
  atRoot?: boolean
}

/** What the OpenAPI document says of a route. */
interface RouteDescription {
  summary: string
  description?: string
  answer: AnswerDescription
  /** Other statuses that are not errors, with their meaning. */
  otherAnswers?: Record<number, string>
  /** Its own errors, besides those of every route. */
  problems?: readonly ProblemCode[]
  /** Media types of a body that is not JSON. */
  rawBody?: readonly string[]
  /** It may come without that body. */
  isBodyOptional?: true
  /** Request headers that it understands: their meaning, and a schema if not every text is valid. */
  requestHeaders?: Record<string, string | { description: string; schema: Record<string, unknown>; required?: true }>
}

type ParamName<Path extends string> = Path extends `${string}:${infer Rest}`
  ? Rest extends `${infer Name}/${infer Further}`
    ? Name | ParamName<`/${Further}`>
    : Rest
  : never

interface RouteInput<Path extends string, Query extends z.ZodType, Body extends z.ZodType> {
  params: Readonly<Record<ParamName<Path>, string>>
  query: z.output<Query>
  body: z.output<Body>
}

export interface RouteDefinition<
  A extends Access,
  Path extends string,
  Query extends z.ZodType,
  Body extends z.ZodType,
> extends RouteFacts {
  /** Method and path: `GET /job/:id`. */
  route: `${Method} ${Path}`
  /** Default: `key`. */
  access?: A
  query?: Query
  body?: Body
  handle(call: A extends 'key' ? KeyedCall : Call, input: RouteInput<Path, Query, Body>): Promise<RouteAnswer>
}

/** A route as the table keeps it: input is checked before the handler sees it. */
export interface Route extends RouteFacts {
  readonly method: Method
  /** In the syntax of `rou3`: segments like `:id` are params; a last segment `**:name` takes the rest of the path. */
  readonly path: string
  readonly access: Access
  readonly query?: z.ZodType
  readonly body?: z.ZodType
  run(call: Call | KeyedCall, params: Readonly<Record<string, string>>): Promise<RouteAnswer>
}

export interface DescribedRoute extends Route, RouteDescription {}

/** Defines a route: the one source of matching, validation and the OpenAPI document. */
export function defineRoute<
  Path extends string,
  A extends Access = 'key',
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
>(definition: RouteDefinition<A, Path, Query, Body> & RouteDescription): DescribedRoute {
  return { ...definition, ...definePageRoute(definition) }
}

/** Defines a route that only a page of the service uses: it is not in the document. */
export function definePageRoute<
  Path extends string,
  A extends Access = 'key',
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
>(definition: RouteDefinition<A, Path, Query, Body>): Route {
  const { handle, query, body, route, access = 'key', ...facts } = definition
  const [method, path] = route.split(' ', 2) as [Method, Path]
  const pass = (call: Call, params: Readonly<Record<string, string>>, queried: unknown, sent: unknown) =>
    handle(
      call as A extends 'key' ? KeyedCall : Call,
      { params, query: queried, body: sent } as RouteInput<Path, Query, Body>,
    )
  const run: Route['run'] = async (call, params) => {
    const queried = query && check(query, queryObject(call.search))
    return pass(call, params, queried, body && check(body, await readJson(call, facts.bodyEntries)))
  }
  // Saves a promise on routes that are polled.
  return {
    ...facts,
    access,
    method,
    path,
    query,
    body,
    run: query || body ? run : (call, params) => pass(call, params, undefined, undefined),
  }
}

function check<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = checkInput(schema, value)
  if (result.success) return result.data
  const issues = fieldIssues(result.issues)
  const named = issues.map(({ path, message }) => ({ path: path || 'body', message }))
  const text = issuesText(named, result.issues.length)
  throw new Problem('BAD_INPUT', `The request is not valid. ${text}.`, { issues })
}

/** Repeated keys become arrays. Without a prototype, so that no client key has a special meaning. */
function queryObject(search: URLSearchParams): Record<string, string | string[]> {
  const object: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of search) {
    const known = object[name]
    if (known === undefined) object[name] = value
    else if (Array.isArray(known)) known.push(value)
    else object[name] = [known, value]
  }
  return object
}
