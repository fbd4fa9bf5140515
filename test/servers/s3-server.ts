import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type CheckedBody, checkedBody, textOf } from './s3/body.js'
import { Bucket, type Condition, readFrom, type StoredObject } from './s3/bucket.js'
import { listMultipartUploads, listObjects, listParts } from './s3/listings.js'
import { S3Error } from './s3/s3-error.js'
import { type Credentials, verifySignature } from './s3/signature.js'
import { element, elements, partsOf, textsOf, xmlDocument, type XmlText } from './s3/xml.js'

/** A request for fault plans and tests. */
export interface S3Request {
  method: string
  bucket: string
  key: string
  query: URLSearchParams
  headers: IncomingMessage['headers']
}

/** Faults of a request. */
export type S3Fault =
  /** 503 before the request is handled. */
  | 'slow down'
  /** 403, as for a client without the permission. */
  | 'access denied'
  /** The connection ends before the request is handled, or afterwards, without an answer. */
  | 'cut before'
  | 'cut after'
  /** The answer's body ends after this many bytes. */
  | { cutAfterBytes: number }

export interface S3Server {
  url: string
  credentials: Credentials
  /** Requests with a valid signature, in order. */
  requests: S3Request[]
  /** Called for each of these requests; no faults while it is undefined. */
  fault?: (request: S3Request) => S3Fault | undefined
  /** The only region whose signatures are valid; undefined: any. */
  region?: string
  /** Whether answers lack the date, by which the SDK would correct the clock of its requests. */
  hidesDate?: boolean
  /** Handling of If-None-Match on writes: `ignore` like old servers, `refuse` (501) like others. */
  conditions: 'honour' | 'ignore' | 'refuse'
  /** Sub-resources that the server answers with 501, like servers without them. */
  lacks: Set<string>
  bucket(name: string): Bucket
  close(): Promise<void>
}

/** Sub-resources that the server knows; others are refused rather than ignored. */
const knownQuery =
  /^(X-Amz-.*|x-id|x-amz-.*|list-type|prefix|max-keys|continuation-token|start-after|encoding-type|delete|uploads|uploadId|partNumber|key-marker|upload-id-marker|max-uploads|response-content-(type|disposition))$/

/**
 * A test's own S3 server: as strict as AWS (signatures, digests, conditions, part sizes), with objects in a
 * temporary folder, so that large bodies pass through memory only in pieces.
 */
export async function startS3Server(buckets: string[] = ['test']): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), 'stemwork-s3-'))
  const stored = new Map(buckets.map((name) => [name, new Bucket(directory)]))
  const http = createServer((request, response) => {
    response.sendDate = server.hidesDate !== true
    void answer(request, response)
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const address = http.address()
  if (typeof address !== 'object' || address === null) throw new Error('The server has no port.')

  const server: S3Server = {
    url: `http://127.0.0.1:${address.port}`,
    credentials: { accessKeyId: 'AKIATEST', secretAccessKey: 'secret/with+signs' },
    requests: [],
    conditions: 'honour',
    lacks: new Set(),
    bucket(name) {
      const bucket = stored.get(name)
      if (!bucket) throw new S3Error(404, 'NoSuchBucket', 'The specified bucket does not exist')
      return bucket
    },
    async close() {
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
      await rm(directory, { recursive: true, force: true })
    },
  }
  return server

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await handle(request, response)
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy()
      const { status, code, message } =
        error instanceof S3Error ? error : new S3Error(500, 'InternalError', String(error))
      // The rest of a refused body must not be parsed as the next request.
      if (!request.complete) response.setHeader('connection', 'close')
      if (request.method === 'HEAD') return void response.writeHead(status).end()
      sendXml(response, element('Error', elements(element('Code', code), element('Message', message))), status)
    }
  }

  async function handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(message.url ?? '/', server.url)
    const verified = verifySignature(message, url, server.credentials)
    const [, region] = verified.scope.split('/')
    if (server.region !== undefined && region !== server.region)
      throw new S3Error(
        400,
        'AuthorizationHeaderMalformed',
        `The authorization header is malformed; the region '${region}' is wrong; expecting '${server.region}'`,
      )
    const [, bucketName, ...rest] = url.pathname.split('/')
    const request: S3Request = {
      method: message.method ?? '',
      bucket: bucketName!,
      key: decodeURIComponent(rest.join('/')),
      query: url.searchParams,
      headers: message.headers,
    }
    server.requests.push(request)
    const strange = [...url.searchParams.keys()].find((name) => !knownQuery.test(name) || server.lacks.has(name))
    if (strange) throw new S3Error(501, 'NotImplemented', `The server does not know "${strange}".`)
    const fault = server.fault?.(request)
    if (fault === 'slow down') throw new S3Error(503, 'SlowDown', 'Please reduce your request rate.')
    if (fault === 'access denied') throw new S3Error(403, 'AccessDenied', 'Access Denied')
    if (fault === 'cut before') return void message.destroy()
    if (fault === 'cut after') cutAnswer(response)
    const body = checkedBody(message, url, verified)
    const uploadId = request.query.get('uploadId')
    if (request.key === '') await answerBucket(request, body, response)
    else if (request.method === 'GET' && uploadId !== null)
      sendXml(response, listParts(server.bucket(request.bucket).upload(request.key, uploadId)))
    else if (request.method === 'GET' || request.method === 'HEAD')
      await sendObject(request, response, typeof fault === 'object' ? fault.cutAfterBytes : Infinity)
    else await answerObject(request, body, response)
  }

  async function answerBucket(
    { method, bucket: name, query, headers }: S3Request,
    body: CheckedBody,
    response: ServerResponse,
  ): Promise<void> {
    if (method === 'PUT') {
      if (stored.has(name)) throw new S3Error(409, 'BucketAlreadyOwnedByYou')
      stored.set(name, new Bucket(directory))
      return void response.writeHead(200).end()
    }
    const bucket = server.bucket(name)
    if (method === 'HEAD') return void response.writeHead(200).end()
    if (method === 'GET' && query.get('list-type') === '2') return sendXml(response, listObjects(name, bucket, query))
    if (method === 'GET' && query.has('uploads')) return sendXml(response, listMultipartUploads(name, bucket, query))
    const hasDigest = Object.keys(headers).some((name) => name === 'content-md5' || name.startsWith('x-amz-checksum-'))
    if (query.has('delete') && !hasDigest)
      throw new S3Error(
        400,
        'InvalidRequest',
        'Missing required header for this request: Content-MD5 OR x-amz-checksum-*',
      )
    if (method === 'POST' && query.has('delete'))
      return sendXml(response, await deleteObjects(bucket, await textOf(body)))
    throw new S3Error(405, 'MethodNotAllowed')
  }

  async function answerObject(request: S3Request, body: CheckedBody, response: ServerResponse): Promise<void> {
    const { method, key, query, headers } = request
    const bucket = server.bucket(request.bucket)
    const uploadId = query.get('uploadId')
    if (Buffer.byteLength(key) > 1024) throw new S3Error(400, 'KeyTooLongError')
    if (method === 'POST' && query.has('uploads')) {
      const upload = bucket.beginUpload(key, keptHeaders(headers))
      return sendXml(
        response,
        element(
          'InitiateMultipartUploadResult',
          elements(element('Bucket', request.bucket), element('Key', key), element('UploadId', upload.id)),
        ),
      )
    }
    if (method === 'POST' && uploadId !== null) {
      const parts = partsOf(await textOf(body), 'Part').map((part) => ({
        number: Number(textsOf(part, 'PartNumber')[0]),
        etag: textsOf(part, 'ETag')[0]!,
      }))
      const object = await bucket.completeUpload(key, uploadId, parts, conditionOf(request))
      return sendXml(
        response,
        element('CompleteMultipartUploadResult', elements(element('Key', key), element('ETag', object.etag))),
      )
    }
    if (method === 'PUT' && uploadId !== null) {
      const part = await bucket.putPart(key, uploadId, Number(query.get('partNumber')), body)
      return void response.writeHead(200, { etag: `"${part.md5}"` }).end()
    }
    if (method === 'PUT') {
      const object = await bucket.put(key, body, keptHeaders(headers), conditionOf(request))
      return void response.writeHead(200, { etag: object.etag }).end()
    }
    if (method !== 'DELETE') throw new S3Error(405, 'MethodNotAllowed')
    if (uploadId !== null) await bucket.abortUpload(key, uploadId)
    else await bucket.delete(key)
    response.writeHead(204).end()
  }

  function conditionOf({ headers }: S3Request): Condition {
    const [ifNoneMatch, ifMatch] = [headers['if-none-match'], headers['if-match']]
    if (ifNoneMatch !== undefined && server.conditions === 'refuse')
      throw new S3Error(501, 'NotImplemented', 'A header you provided implies functionality that is not implemented.')
    return server.conditions === 'honour' ? { ifNoneMatch, ifMatch } : {}
  }

  async function sendObject(
    { method, bucket, key, query, headers }: S3Request,
    response: ServerResponse,
    cutAfterBytes: number,
  ): Promise<void> {
    const object = server.bucket(bucket).get(key)
    if (headers['if-match'] !== undefined && headers['if-match'] !== object.etag)
      throw new S3Error(412, 'PreconditionFailed')
    const answered = objectHeaders(object, query)
    if (headers['if-none-match'] === object.etag) return void response.writeHead(304, answered).end()
    const range = rangeOf(headers.range, object.bytes)
    const [start, end] = range ?? [0, object.bytes - 1]
    if (range) answered['content-range'] = `bytes ${start}-${end}/${object.bytes}`
    response.writeHead(range ? 206 : 200, { ...answered, 'content-length': end - start + 1 })
    if (method === 'HEAD') return void response.end()
    const lastSent = Math.min(end, start + cutAfterBytes - 1)
    await pipeline(Readable.from(readFrom(object.file, start, lastSent), { objectMode: false }), response, {
      end: lastSent === end,
    })
    if (lastSent < end) response.destroy()
  }
}

async function deleteObjects(bucket: Bucket, xml: string): Promise<XmlText> {
  const keys = partsOf(xml, 'Object').map((object) => textsOf(object, 'Key')[0])
  if (keys.length === 0 || keys.length > 1000) throw new S3Error(400, 'MalformedXML')
  for (const key of keys) await bucket.delete(key!)
  const isQuiet = textsOf(xml, 'Quiet')[0] === 'true'
  return element('DeleteResult', elements(isQuiet ? [] : keys.map((key) => element('Deleted', element('Key', key!)))))
}

function keptHeaders(headers: IncomingMessage['headers']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      /^(content-type|content-disposition|cache-control|x-amz-meta-.*)$/.test(name) && typeof value === 'string'
        ? [[name, value]]
        : [],
    ),
  )
}

function objectHeaders(object: StoredObject, query: URLSearchParams): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'binary/octet-stream',
    ...object.headers,
    etag: object.etag,
    'last-modified': object.modifiedAt.toUTCString(),
    'accept-ranges': 'bytes',
  }
  for (const name of ['content-type', 'content-disposition']) {
    const wanted = query.get(`response-${name}`)
    if (wanted !== null) headers[name] = wanted
  }
  return headers
}

function rangeOf(header: string | undefined, bytes: number): [number, number] | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '')
  if (!match || (match[1] === '' && match[2] === '')) return undefined
  const start = match[1] === '' ? Math.max(0, bytes - Number(match[2])) : Number(match[1])
  const end = match[1] === '' || match[2] === '' ? bytes - 1 : Math.min(Number(match[2]), bytes - 1)
  if (start >= bytes || start > end) throw new S3Error(416, 'InvalidRange')
  return [start, end]
}

function sendXml(response: ServerResponse, root: XmlText, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/xml' }).end(xmlDocument(root))
}

/** Handles the request, but loses its answer. */
function cutAnswer(response: ServerResponse): void {
  response.writeHead = () => response
  response.end = () => response.destroy()
}
