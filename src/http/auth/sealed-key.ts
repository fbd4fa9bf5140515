import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** A key on its way through a browser: in the cookie of a page's session, or in a link that signs in once. */
export interface SealedKey {
  key: string
  /** Epoch milliseconds. */
  expiresAt: number
  /** Whether the session outlives the browser. */
  isRemembered: boolean
  /** Unique to each seal. */
  id: string
}

/** Purpose of a seal, which cannot be opened for any other. */
export type SealPurpose = 'console' | 'operator' | 'sign-in link'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/**
 * Encrypts keys so that only this service can read them. The first secret seals, all of them open. They are the secrets
 * that sign links.
 */
export class KeySeal {
  readonly #secrets: readonly Buffer[]

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', 'stemwork key seal', 32)))
  }

  seal(purpose: SealPurpose, content: Omit<SealedKey, 'id'>): string {
    const [secret] = this.#secrets
    if (!secret) throw new RangeError('keys cannot be sealed without a secret')
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv(algorithm, secret, nonce)
    cipher.setAAD(Buffer.from(purpose))
    const { key, expiresAt, isRemembered } = content
    const text = JSON.stringify([key, expiresAt, isRemembered])
    return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString(
      'base64url',
    )
  }

  /** `undefined` for a seal that is forged, expired, for another purpose, or made with a secret no longer in use. */
  open(purpose: SealPurpose, sealed: string): SealedKey | undefined {
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.length <= nonceBytes + tagBytes) return undefined
    for (const secret of this.#secrets) {
      const text = decrypted(secret, purpose, bytes)
      if (text === undefined) continue
      const [key, expiresAt, isRemembered] = JSON.parse(text) as [string, number, boolean]
      const id = bytes.subarray(0, nonceBytes).toString('base64url')
      return expiresAt > Date.now() ? { key, expiresAt, isRemembered, id } : undefined
    }
    return undefined
  }
}

/** Validity of a sign-in link, which works once. */
const linkMs = 24 * 60 * 60 * 1000

/** The code of a one-time sign-in link to the console: `<base path>/console#code=<code>`. */
export function signInCode(seal: KeySeal, key: string): string {
  return seal.seal('sign-in link', { key, expiresAt: Date.now() + linkMs, isRemembered: false })
}

function decrypted(secret: Buffer, purpose: SealPurpose, bytes: Buffer): string | undefined {
  const decipher = createDecipheriv(algorithm, secret, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(purpose))
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  try {
    return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    return undefined
  }
}
