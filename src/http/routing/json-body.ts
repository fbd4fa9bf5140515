import type { Call } from './call.js'
import { Problem } from './problem.js'
import type { RequestBody } from './request-body.js'

const maxDepth = 32

/**
 * The JSON body of a request, bounded in size and depth, without `__proto__` keys.
 *
 * @throws Problem `UNSUPPORTED_MEDIA_TYPE`, `TOO_LARGE` or `BAD_INPUT`.
 */
export async function readJson(call: Call): Promise<unknown> {
  const { headers } = call.request
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? ''
  if (type !== 'application/json' && !/^application\/[^/\s]+\+json$/.test(type)) {
    throw new Problem(
      'UNSUPPORTED_MEDIA_TYPE',
      `The body must be JSON, sent with Content-Type: application/json; this request has ${type ? JSON.stringify(type) : 'no content type'}.`,
    )
  }
  const { limits } = call.service.options
  const { parsed } = call.body
  if (parsed) return parseJson(boundedText(parsed, limits.jsonBytes))
  if ((headers.get('content-encoding') ?? 'identity').trim().toLowerCase() !== 'identity') {
    throw new Problem('UNSUPPORTED_MEDIA_TYPE', 'Compressed request bodies are not accepted. Send the JSON as it is.')
  }
  return parseJson(await readText(call.body, limits))
}

/** @throws Problem `BAD_INPUT` for text that is not JSON or nests deeper than 32 levels. */
export function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Problem('BAD_INPUT', 'The body is not valid JSON.', { cause: error })
  }
  clean(value, 0)
  return value
}

/** Written anew, so that it is a copy of our own, and no more than JSON. */
function boundedText(parsed: object, jsonBytes: number): string {
  const text = JSON.stringify(parsed)
  if (Buffer.byteLength(text) > jsonBytes) throw tooLarge(jsonBytes)
  return text
}

function tooLarge(jsonBytes: number): Problem {
  return new Problem('TOO_LARGE', `A JSON body may have at most ${jsonBytes} bytes.`, {
    headers: { connection: 'close' },
  })
}

async function readText(body: RequestBody, limits: { jsonBytes: number; discardBytes: number }): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body.chunks()) {
    bytes += chunk.byteLength
    if (bytes > limits.jsonBytes) {
      await body.discard(limits.discardBytes)
      throw tooLarge(limits.jsonBytes)
    }
    chunks.push(chunk)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch (error) {
    throw new Problem('BAD_INPUT', 'The body is not valid UTF-8.', { cause: error })
  }
}

/** JSON.parse makes `__proto__` an own key, which a later copy by assignment would turn into a prototype. */
function clean(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return
  if (depth >= maxDepth) throw new Problem('BAD_INPUT', `The body nests deeper than ${maxDepth} levels.`)
  if (Object.hasOwn(value, '__proto__')) delete (value as Record<string, unknown>)['__proto__']
  for (const inner of Object.values(value)) clean(inner, depth + 1)
}
