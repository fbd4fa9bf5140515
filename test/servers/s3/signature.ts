import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { S3Error } from './s3-error.js'

export interface Credentials {
  accessKeyId: string
  secretAccessKey: string
}

/** The body's SHA-256 according to the signature, or that the body is unsigned, or that its chunks are signed. */
export interface VerifiedRequest {
  contentSha256: string
  /** Key and scope for chunk signatures. */
  signingKey: Buffer
  scope: string
  date: string
  signature: string
}

const maxSkewMs = 15 * 60 * 1000

/**
 * Checks AWS Signature Version 4 in the headers or in the query.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
 */
export function verifySignature(request: IncomingMessage, url: URL, credentials: Credentials): VerifiedRequest {
  const claim = url.searchParams.has('X-Amz-Signature') ? claimOfQuery(url) : claimOfHeaders(request)
  const [accessKeyId, day, region, service, terminator] = claim.credential.split('/')
  if (accessKeyId !== credentials.accessKeyId) throw new S3Error(403, 'InvalidAccessKeyId')
  if (service !== 's3' || terminator !== 'aws4_request' || !claim.date.startsWith(day!))
    throw new S3Error(400, 'AuthorizationQueryParametersError')
  if (!claim.signedHeaders.includes('host')) throw new S3Error(403, 'AccessDenied', 'The host header must be signed')
  const unsigned = Object.keys(request.headers).find(
    (name) => name.startsWith('x-amz-') && !claim.signedHeaders.includes(name),
  )
  if (unsigned)
    throw new S3Error(
      403,
      'AccessDenied',
      `There were headers present in the request which were not signed: ${unsigned}`,
    )

  const canonicalRequest = [
    request.method,
    url.pathname
      .split('/')
      .map((segment) => encode(decodeURIComponent(segment)))
      .join('/'),
    canonicalQuery(url),
    ...claim.signedHeaders.map(
      (name) =>
        `${name}:${String(request.headers[name] ?? '')
          .trim()
          .replace(/\s+/g, ' ')}`,
    ),
    '',
    claim.signedHeaders.join(';'),
    claim.contentSha256,
  ].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const signingKey = [day, region, 's3', 'aws4_request'].reduce<Buffer>(
    (key, part) => hmac(key, part!),
    Buffer.from(`AWS4${credentials.secretAccessKey}`),
  )
  const expected = hmac(signingKey, ['AWS4-HMAC-SHA256', claim.date, scope, sha256(canonicalRequest)].join('\n'))
  const given = Buffer.from(claim.signature, 'hex')
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new S3Error(403, 'SignatureDoesNotMatch')
  return { contentSha256: claim.contentSha256, signingKey, scope, date: claim.date, signature: claim.signature }
}

export function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

export function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

interface Claim {
  credential: string
  signedHeaders: string[]
  signature: string
  date: string
  contentSha256: string
}

function claimOfQuery(url: URL): Claim {
  const value = (name: string) => url.searchParams.get(name) ?? ''
  if (value('X-Amz-Algorithm') !== 'AWS4-HMAC-SHA256') throw new S3Error(400, 'AuthorizationQueryParametersError')
  const seconds = Number(value('X-Amz-Expires'))
  if (!(seconds > 0 && seconds <= 7 * 24 * 60 * 60))
    throw new S3Error(400, 'AuthorizationQueryParametersError', 'X-Amz-Expires must be between 1 and 604800')
  const date = value('X-Amz-Date')
  const signedAt = timeOf(date)
  if (signedAt > Date.now() + maxSkewMs || Date.now() > signedAt + seconds * 1000)
    throw new S3Error(403, 'AccessDenied', 'Request has expired')
  return {
    credential: value('X-Amz-Credential'),
    signedHeaders: value('X-Amz-SignedHeaders').split(';'),
    signature: value('X-Amz-Signature'),
    date,
    contentSha256: url.searchParams.get('X-Amz-Content-Sha256') ?? 'UNSIGNED-PAYLOAD',
  }
}

function claimOfHeaders({ headers }: IncomingMessage): Claim {
  const match = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
    headers.authorization ?? '',
  )
  const date = headers['x-amz-date']
  const contentSha256 = headers['x-amz-content-sha256']
  if (!match || typeof date !== 'string' || typeof contentSha256 !== 'string')
    throw new S3Error(403, 'AccessDenied', 'The request is not signed')
  if (Math.abs(timeOf(date) - Date.now()) > maxSkewMs) throw new S3Error(403, 'RequestTimeTooSkewed')
  return { credential: match[1]!, signedHeaders: match[2]!.split(';'), signature: match[3]!, date, contentSha256 }
}

function timeOf(date: string): number {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date)
  if (!match) throw new S3Error(403, 'AccessDenied', 'The date is not valid')
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number)
  return Date.UTC(year!, month! - 1, day, hour, minute, second)
}

function canonicalQuery(url: URL): string {
  return [...url.searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&')
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
