import { createHmac, hash, timingSafeEqual } from 'node:crypto'

/** Permissions of a signed link. Every field is covered by the signature. */
export interface Grant {
  /** `GET` allows `HEAD` too. */
  method: 'GET' | 'PUT'
  /** Blob key of the object. */
  key: string
  /** Epoch seconds. */
  expiresAt: number
  /** Largest body that may be written; 0 for reading. */
  maxBytes: number
  /** Application that the link was made for. */
  app: string
  /** ID of the API key, or of the link to a job, through which the link was made; absent: it outlives these. */
  keyId?: string
  /** The file name offered for the download; absent: the end of the key. */
  fileName?: string
}

/** Links with a key id have the second form, links with a file name the third. */
const versions = { plain: '1', ofKey: '2', named: '3' }

interface Secret {
  id: string
  bytes: Buffer
}

/**
 * Signs links with HMAC-SHA256 and checks them. The first secret signs, all of them verify: to rotate, put a new one in
 * front and drop the old one when the links made with it have expired.
 */
export class UrlSigner {
  readonly #secrets: readonly Secret[]

  constructor(secrets: readonly [string, ...string[]] | readonly string[]) {
    this.#secrets = secrets.map((secret) => ({
      id: hash('sha256', `stemwork link key ${secret}`).slice(0, 8),
      bytes: Buffer.from(secret, 'utf8'),
    }))
  }

  /** Returns the query to append to the object's path. */
  sign(grant: Grant): URLSearchParams {
    const [secret] = this.#secrets
    if (!secret) throw new RangeError('links cannot be signed without a secret')
    const query = new URLSearchParams({ v: versionOf(grant), app: grant.app, expires: String(grant.expiresAt) })
    if (grant.keyId !== undefined) query.set('holder', grant.keyId)
    if (grant.fileName !== undefined) query.set('name', grant.fileName)
    if (grant.method === 'PUT') query.set('limit', String(grant.maxBytes))
    query.set('key', secret.id)
    query.set('signature', mac(secret, grant).toString('base64url'))
    return query
  }

  /**
   * The grant that `query` carries for this method and object, whether or not it has expired; `undefined` if it is
   * forged.
   */
  verify(method: 'GET' | 'PUT', key: string, query: URLSearchParams): Grant | undefined {
    const value = (name: string) => (query.getAll(name).length === 1 ? (query.get(name) ?? undefined) : undefined)
    const expires = decimal(value('expires'))
    const limit = method === 'PUT' ? decimal(value('limit')) : 0
    const app = value('app')
    const signature = value('signature')
    const secret = this.#secrets.find(({ id }) => id === value('key'))
    if (expires === undefined || limit === undefined || app === undefined || !signature || !secret) return undefined
    const grant: Grant = {
      method,
      key,
      expiresAt: expires,
      maxBytes: limit,
      app,
      keyId: value('holder'),
      fileName: value('name'),
    }
    if (value('v') !== versionOf(grant)) return undefined
    const expected = mac(secret, grant)
    const given = Buffer.from(signature, 'base64url')
    return given.length === expected.length && timingSafeEqual(given, expected) ? grant : undefined
  }
}

/** JSON of an array of strings is unambiguous: no field can be extended into the next. */
function mac(secret: Secret, grant: Grant): Buffer {
  const fields = [
    'stemwork-link',
    versionOf(grant),
    secret.id,
    grant.method,
    grant.key,
    String(grant.expiresAt),
    String(grant.maxBytes),
    grant.app,
    ...(grant.keyId === undefined ? [] : [grant.keyId]),
    ...(grant.fileName === undefined ? [] : [grant.fileName]),
  ]
  return createHmac('sha256', secret.bytes).update(JSON.stringify(fields)).digest()
}

function versionOf({ keyId, fileName }: Grant): string {
  if (fileName !== undefined) return versions.named
  return keyId === undefined ? versions.plain : versions.ofKey
}

function decimal(text: string | undefined): number | undefined {
  return text !== undefined && /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : undefined
}
