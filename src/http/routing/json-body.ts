import type { Call } from './call.js'
import { Problem } from './problem.js'
import type { RequestBody } from './request-body.js'

const maxDepth = 32

/** Most bytes of a body without a key; with one, a larger body needs a slot: it takes memory until it is complete. */
const smallBytes = 16 * 1024

/**
 * Reads the JSON body of a request, bounded in size and depth, without `__proto__` keys.
 *
 * @throws Problem `UNSUPPORTED_MEDIA_TYPE`, `TOO_LARGE`, `BAD_INPUT` or `RATE_LIMITED`.
 */
export async function readJson(call: Call, otherEntries = usualEntries): Promise<unknown> {
  const { headers } = call.request
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? ''
  if (type !== 'application/json' && !/^application\/[^/\s]+\+json$/.test(type)) {
    throw new Problem(
      'UNSUPPORTED_MEDIA_TYPE',
      'The body must be JSON, sent with Content-Type: application/json; this request has ' +
        `${type ? JSON.stringify(type) : 'no content type'}.`,
    )
  }
  const { limits } = call.service.options
  const { parsed } = call.body
  if (parsed) return parseJson(boundedBytes(parsed, limits.jsonBytes), limits.paramsBytes, otherEntries)
  if ((headers.get('content-encoding') ?? 'identity').trim().toLowerCase() !== 'identity') {
    throw new Problem('UNSUPPORTED_MEDIA_TYPE', 'Compressed request bodies are not accepted. Send the JSON as it is.')
  }
  return parseJson(await bytesOf(call), limits.paramsBytes, otherEntries)
}

/** Members and values that a body may have besides those of `params`: twice the number that a job can have. */
const usualEntries = 256

/**
 * @throws Problem `BAD_INPUT` if the bytes are not JSON in UTF-8, nest deeper than 32 levels, or have more entries than
 * any valid body.
 */
export function parseJson(bytes: Uint8Array, paramsBytes: number, otherEntries = usualEntries): unknown {
  if (bytes.byteLength === 0) throw new Problem('BAD_INPUT', 'The request has no body. Send JSON, at least {}.')
  refuseManyEntries(bytes, paramsBytes, otherEntries)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new Problem('BAD_INPUT', 'The body is not valid UTF-8. Encode the JSON as UTF-8.', { cause: error })
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    // V8's message names the position, and quotes only what the client sent.
    throw new Problem('BAD_INPUT', `The body is not valid JSON: ${(error as Error).message}.`, { cause: error })
  }
  return cleaned(value, 0)
}

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const comma = 0x2c
const bracket = 0x5b
const brace = 0x7b

/**
 * Building ten thousand members, or as many nested arrays, blocks the process for tens of milliseconds only to refuse
 * them; counting their delimiters up to the limit takes a fraction of a millisecond. Within `paramsBytes`, a value
 * takes at least two bytes and a member six.
 */
function refuseManyEntries(bytes: Uint8Array, paramsBytes: number, otherEntries: number): void {
  const maxValues = Math.floor(paramsBytes / 2) + otherEntries
  const maxMembers = Math.floor(paramsBytes / 6) + otherEntries
  if (bytes.byteLength < 2 * maxValues) return
  let values = 0
  let members = 0
  let nested = 0
  let isText = false
  for (let index = 0; index < bytes.byteLength; index++) {
    const byte = bytes[index]
    if (byte === quote) isText = !isText
    else if (isText) index += byte === backslash ? 1 : 0
    else if (byte === comma && ++values > maxValues) throw tooManyEntries('values', maxValues)
    else if (byte === colon && ++members > maxMembers) throw tooManyEntries('members', maxMembers)
    else if ((byte === bracket || byte === brace) && ++nested > maxValues) throw tooManyEntries('values', maxValues)
  }
}

function tooManyEntries(what: 'values' | 'members', most: number): Problem {
  const message = `The body has more than ${most} ${what}, which is more than any valid body has. Send fewer.`
  return new Problem('BAD_INPUT', message)
}

/** Serialized again, so that it is our own copy and only JSON. */
function boundedBytes(parsed: object, jsonBytes: number): Uint8Array {
  const bytes = Buffer.from(JSON.stringify(parsed))
  if (bytes.byteLength > jsonBytes) throw tooLarge(jsonBytes)
  return bytes
}

function tooLarge(jsonBytes: number): Problem {
  return new Problem(
    'TOO_LARGE',
    `A JSON body may have at most ${jsonBytes} bytes. Send less, or in several requests.`,
    {
      headers: { connection: 'close' },
    },
  )
}

async function bytesOf({ body, caller, request, service }: Call): Promise<Uint8Array> {
  const { jsonBytes, discardBytes } = service.options.limits
  const mayBeLarge = Number(request.headers.get('content-length') ?? Infinity) > smallBytes
  const slot = caller && mayBeLarge ? service.largeBodies.take(caller.id) : undefined
  const mostBytes = caller ? jsonBytes : Math.min(jsonBytes, smallBytes)
  try {
    return await readBytes(body, { jsonBytes: mostBytes, discardBytes }, slot?.lost)
  } finally {
    slot?.release()
  }
}

/** @throws Problem `TOO_LARGE`, or errors of the body */
export async function readBytes(
  body: RequestBody,
  { jsonBytes, discardBytes }: { jsonBytes: number; discardBytes: number },
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body.chunks(signal)) {
    bytes += chunk.byteLength
    if (bytes > jsonBytes) {
      await body.discard(discardBytes)
      throw tooLarge(jsonBytes)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/**
 * Drops `__proto__`: JSON.parse makes it an own key, which a later copy by assignment would turn into a prototype.
 * Replaces half surrogate pairs, as in a name that was cut off: no URL can carry them.
 */
function cleaned(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  if (depth >= maxDepth)
    throw new Problem('BAD_INPUT', `The body is nested deeper than ${maxDepth} levels. Send a flatter one.`)
  const fields = value as Record<string, unknown>
  if (Object.hasOwn(fields, '__proto__')) delete fields['__proto__']
  for (const [name, inner] of Object.entries(fields)) {
    const whole = name.toWellFormed()
    if (whole !== name) delete fields[name]
    fields[whole] = cleaned(inner, depth + 1)
  }
  return fields
}
