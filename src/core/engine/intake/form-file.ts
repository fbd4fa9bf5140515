import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { BusboyFileStream } from '@fastify/busboy'
import { badInput, StemworkError } from '../errors.js'

/** Name of the form field that carries the file. */
export const fileField = 'filedata'

/** Most bytes of a form's boundaries and headers around the file. */
export const formOverheadBytes = 256 * 1024

const boundaryLine = /^(?:\r\n)?--([0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-])[ \t]*\r\n/
/** A whole form without a field, as of a program that forgot the file. */
const emptyForm = /^(?:\r\n)?--([0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-])--(?:\r\n)*$/
/** Bytes needed to recognize a form: the longest boundary with its line breaks, and the first header's name. */
export const peekBytes = 128

/** The file in a multipart form, or the plain bytes if it is not a form. @throws StemworkError as `fileFromForm`. */
export async function* unwrapMultipart(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const iterator = source[Symbol.asyncIterator]()
  try {
    const { boundary, bytes } = await peekBoundary(iterator)
    yield* boundary === undefined ? bytes : fileFromForm(bytes, boundary)
  } finally {
    await iterator.return?.()
  }
}

/**
 * Detects a multipart form by its first bytes. Some clients declare `multipart/form-data` and send the raw file, others
 * send a form without declaring it, so the header is ignored.
 *
 * @returns the boundary, if it is a form, and the whole body
 */
export async function peekBoundary(source: AsyncIterator<Uint8Array>) {
  const chunks: Uint8Array[] = []
  let length = 0
  while (length < peekBytes) {
    const { done, value } = await source.next()
    if (done) break
    chunks.push(value)
    length += value.byteLength
  }
  const head = Buffer.concat(chunks)
  return { boundary: findBoundary(head), bytes: replay(head, source) }
}

function findBoundary(head: Buffer): string | undefined {
  const text = head.toString('latin1', 0, peekBytes)
  const empty = head.byteLength < peekBytes ? emptyForm.exec(text) : null
  if (empty) return empty[1]
  const match = boundaryLine.exec(text)
  // A part begins with headers; without a header, this is a file that happens to begin with dashes.
  return match && /^content-[a-z-]*:/i.test(text.slice(match[0].length)) ? match[1] : undefined
}

async function* replay(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (head.byteLength > 0) yield head
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}

/**
 * Yields the bytes of the form's field `filedata`, as they arrive.
 *
 * @throws the source's error; StemworkError `BAD_INPUT` for a form without that field, or a damaged or truncated form.
 */
export async function* fileFromForm(
  source: AsyncIterable<Uint8Array>,
  boundary: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { Busboy } = await import('@fastify/busboy')
  const parser = new Busboy({
    headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` },
    isPartAFile: (name) => name === fileField,
    limits: { fieldSize: 64 * 1024, fields: 100, parts: 200, headerPairs: 100, headerSize: 16 * 1024 },
  })
  let sourceError: { cause: unknown } | undefined
  let file: BusboyFileStream | undefined
  const found = new Promise<BusboyFileStream | undefined>((resolve) => {
    parser.on('file', (_name, stream) => {
      if (file) return stream.resume()
      file = stream
      resolve(stream)
    })
    // Thousands of empty parts would block the event loop.
    parser.once('partsLimit', () => parser.destroy(tooManyParts()))
    parser.once('finish', () => resolve(file))
    parser.once('close', () => resolve(file))
  })
  const watched = async function* () {
    try {
      yield* source
    } catch (error) {
      sourceError = { cause: error }
      throw error
    }
  }
  const feeding = pipeline(Readable.from(watched(), { objectMode: false }), parser)
  // The reader below would wait forever for a truncated part.
  feeding.catch((error: unknown) => file?.destroy(error instanceof Error ? error : new Error(String(error))))
  try {
    const part = await found
    if (part) yield* part as AsyncIterable<Uint8Array>
    await feeding
    if (!part)
      throw badInput(
        'decode_failed',
        `The form has no field named "${fileField}". Send the file in that field, or as the plain body.`,
      )
  } catch (error) {
    if (sourceError) throw sourceError.cause
    if (StemworkError.is(error)) throw error
    throw badInput(
      'decode_failed',
      'The multipart form is damaged or breaks off before its last boundary. Send the file again, or as the plain ' +
        'body.',
      error,
    )
  } finally {
    parser.destroy()
  }
}

function tooManyParts(): StemworkError {
  return badInput('decode_failed', 'The form has more than 200 parts. Send only the file.')
}
