import { hash as digest, randomBytes, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * API keys: prefix, public id, 32 random bytes, checksum. The checksum lets secret scanners recognize keys and reveals
 * typing errors without a look-up. Keys that an operator supplies may have any form of at least 16 characters.
 */
const ownForm = /^stw_([0-9a-f]{16})_[A-Za-z0-9_-]{43}([0-9a-f]{8})$/

/** The public part of one of our keys. */
export function publicPart(key: string): string {
  return key.slice(0, 20)
}

/** The stored part of a key: its public id, and the SHA-256 of the whole key in hex. */
export interface KeyFingerprint {
  id: string
  hash: string
}

/** A new key. It cannot be shown again: only its fingerprint is stored. */
export function generateApiKey(): { key: string } & KeyFingerprint {
  const id = randomBytes(8).toString('hex')
  const body = `stw_${id}_${randomBytes(32).toString('base64url')}`
  const key = body + checksum(body)
  return { key, id, hash: sha256(key) }
}

/** The id under which a key is looked up and the hash that it must match; `undefined` if it cannot be a key. */
export function fingerprint(key: string): KeyFingerprint | undefined {
  const [own, id, sum] = ownForm.exec(key) ?? []
  if (own !== undefined && id !== undefined)
    return checksum(key.slice(0, -8)) === sum ? { id, hash: sha256(key) } : undefined
  if (key.length < 16 || key.length > 512 || key.startsWith('stw_')) return undefined
  const hash = sha256(key)
  return { id: `own-${hash.slice(0, 16)}`, hash }
}

/** Whether a key has the form of those that `generateApiKey` makes. */
export function isOwnForm(key: string): boolean {
  return ownForm.test(key)
}

/** Compares two hex digests in constant time. */
export function sameHash(a: string, b: string): boolean {
  const left = Buffer.from(a, 'latin1')
  const right = Buffer.from(b, 'latin1')
  return left.length === right.length && timingSafeEqual(left, right)
}

/** The UTF-16 codes of a text, for `sameText`. */
export function codesOf(text: string): Uint16Array {
  return Uint16Array.from(text, (letter) => letter.charCodeAt(0))
}

/** Compares a text in time that depends only on its length, without the copies that `timingSafeEqual` needs. */
export function sameText(text: string, codes: Uint16Array): boolean {
  let difference = text.length ^ codes.length
  for (let index = 0; index < text.length; index++) difference |= text.charCodeAt(index) ^ (codes[index] ?? 0)
  return difference === 0
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}

function sha256(text: string): string {
  return digest('sha256', text)
}
