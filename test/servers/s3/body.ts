import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { crc32 } from 'node:zlib'
import { S3Error } from './s3-error.js'
import { hmac, sha256, type VerifiedRequest } from './signature.js'

/** The payload of a request, verified at its end against its headers, trailer and signature. */
export interface CheckedBody {
  chunks: AsyncIterable<Buffer>
  /** MD5, hex; known once all chunks have been read. */
  md5(): string
}

export function checkedBody(request: IncomingMessage, url: URL, verified: VerifiedRequest): CheckedBody {
  const { headers } = request
  const md5 = createHash('md5')
  let digest = ''
  const chunks = async function* () {
    const sha = createHash('sha256')
    const sha1 = createHash('sha1')
    let crc = 0
    let bytes = 0
    const trailer: Record<string, string> = {}
    for await (const chunk of payload(request, verified, trailer)) {
      for (const hash of [md5, sha, sha1]) hash.update(chunk)
      crc = crc32(chunk, crc)
      bytes += chunk.byteLength
      yield chunk
    }
    digest = md5.digest('hex')
    const shaDigest = sha.digest()
    if (/^[0-9a-f]{64}$/.test(verified.contentSha256) && verified.contentSha256 !== shaDigest.toString('hex'))
      throw new S3Error(400, 'XAmzContentSHA256Mismatch')
    const length = headers['x-amz-decoded-content-length'] ?? headers['content-length']
    if (length !== undefined && Number(length) !== bytes) throw new S3Error(400, 'IncompleteBody')
    const promised = (name: string) => trailer[name] ?? single(headers, name) ?? url.searchParams.get(name) ?? undefined
    const crcBytes = Buffer.alloc(4)
    crcBytes.writeUInt32BE(crc)
    const actual: Record<string, Buffer> = {
      'content-md5': Buffer.from(digest, 'hex'),
      'x-amz-checksum-crc32': crcBytes,
      'x-amz-checksum-sha1': sha1.digest(),
      'x-amz-checksum-sha256': shaDigest,
    }
    for (const [name, value] of Object.entries(actual)) {
      const expected = promised(name)
      if (expected !== undefined && expected !== value.toString('base64'))
        throw new S3Error(400, 'BadDigest', `The ${name} you specified did not match what we received.`)
    }
    const declared = headers['x-amz-trailer']
    if (typeof declared === 'string' && trailer[declared] === undefined) throw new S3Error(400, 'MalformedTrailerError')
  }
  return { chunks: chunks(), md5: () => digest }
}

/** Reads a small body completely. */
export async function textOf(body: CheckedBody, maxBytes = 2 * 1024 * 1024): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body.chunks) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new S3Error(400, 'MaxMessageLengthExceeded')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function payload(
  request: IncomingMessage,
  verified: VerifiedRequest,
  trailer: Record<string, string>,
): AsyncIterable<Buffer> {
  // A refused body must leave its connection open for the answer.
  const bytes = request.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>
  return verified.contentSha256.startsWith('STREAMING-') ? awsChunks(bytes, verified, trailer) : bytes
}

/**
 * The content of an `aws-chunked` body: `<hex size>[;chunk-signature=...]\r\n<bytes>\r\n`, a chunk of size 0, then the
 * trailer. https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
 */
async function* awsChunks(
  bytes: AsyncIterable<Buffer>,
  verified: VerifiedRequest,
  trailer: Record<string, string>,
): AsyncGenerator<Buffer> {
  const isSigned = verified.contentSha256.startsWith('STREAMING-AWS4-HMAC-SHA256-PAYLOAD')
  const reader = new ByteReader(bytes)
  let previous = verified.signature
  for (;;) {
    const [size, extension] = (await reader.line()).split(';')
    if (!/^[0-9a-f]+$/i.test(size!)) throw new S3Error(400, 'InvalidChunkSizeError')
    const chunk = await reader.take(Number.parseInt(size!, 16))
    if (isSigned) {
      const text = [
        'AWS4-HMAC-SHA256-PAYLOAD',
        verified.date,
        verified.scope,
        previous,
        sha256(''),
        sha256(chunk),
      ].join('\n')
      const expected = hmac(verified.signingKey, text).toString('hex')
      if (extension !== `chunk-signature=${expected}`) throw new S3Error(403, 'SignatureDoesNotMatch')
      previous = expected
    }
    if (chunk.byteLength === 0) break
    yield chunk
    if ((await reader.line()) !== '') throw new S3Error(400, 'IncompleteBody')
  }
  for (let line = await reader.line(); line !== ''; line = await reader.line()) {
    const colon = line.indexOf(':')
    trailer[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
}

class ByteReader {
  readonly #source: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** The text up to the next line break, without it; empty at the end. */
  async line(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf('\r\n')
      if (end >= 0) {
        const line = this.#rest.toString('latin1', 0, end)
        this.#rest = this.#rest.subarray(end + 2)
        return line
      }
      if (!(await this.#more())) return ''
    }
  }

  async take(bytes: number): Promise<Buffer> {
    while (this.#rest.byteLength < bytes) if (!(await this.#more())) throw new S3Error(400, 'IncompleteBody')
    const taken = this.#rest.subarray(0, bytes)
    this.#rest = this.#rest.subarray(bytes)
    return taken
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#source.next()
    if (done) return false
    this.#rest = this.#rest.byteLength === 0 ? value : Buffer.concat([this.#rest, value])
    return true
  }
}

function single(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : undefined
}
