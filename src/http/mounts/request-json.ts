import { Shares } from '../../core/engine/limits/shares.js'
import { toResponse } from '../routing/answer.js'
import { webRequestReader } from '../routing/api-request.js'
import { parseJson, readBytes } from '../routing/json-body.js'
import { problemAnswer, toProblem } from '../routing/problem.js'
import { RequestBody } from '../routing/request-body.js'
import { resolveHandlerOptions } from '../options.js'
import type { MountContext } from './mountable.js'

const read = webRequestReader()
const { limits } = resolveHandlerOptions({})
/** Bounds the number of members: a library that handles thousands of them blocks the event loop for 10 ms. */
const entriesOfBytes = limits.paramsBytes / 4
/** One body per pass of the event loop. */
const turns = new Shares({ total: 1, reserve: 0 })

/**
 * Reads the JSON of a request to a handler other than the service's, within the default limits of a service but with
 * fewer members, in the turn of its application; or returns the answer that refuses it.
 */
export async function jsonOf(
  request: Request,
  { bodyRead = false, parsedBody }: MountContext,
  { app, requestId }: { app: string; requestId: string },
): Promise<{ value: unknown } | { refused: Response }> {
  const body = new RequestBody(read(request), { bodyRead, parsedBody }, limits)
  try {
    const bytes = body.parsed ? Buffer.from(JSON.stringify(body.parsed)) : await readBytes(body, limits)
    const share = await turns.take(app)
    setImmediate(() => share?.release())
    return { value: parseJson(bytes, entriesOfBytes) }
  } catch (error) {
    const accept = request.headers.get('accept')
    return { refused: toResponse(problemAnswer(toProblem(error), { accept, requestId })) }
  }
}
