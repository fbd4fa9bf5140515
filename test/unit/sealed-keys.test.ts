import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { getMaxListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ApiKey } from '../../src/core/engine/ports/application-store.js'
import { watchKeys } from '../../src/http/auth/key-watch.js'
import { KeySeal, type SealPurpose, signInCode } from '../../src/http/auth/sealed-key.js'

const start = 1_700_000_000_000
const day = 86_400_000
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'], now: start }))
afterEach(() => void vi.useRealTimers())

describe('a sealed key', () => {
  const content = { key: 'stw_ü', expiresAt: start + 1, isRemembered: true }

  /** Sealed as by services of this version. Sessions outlive an upgrade, so the format must not change. */
  function sealedByHand(secret: string, purpose: SealPurpose, text: string): string {
    const key = Buffer.from(hkdfSync('sha256', secret, '', 'stemwork key seal', 32))
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 }).setAAD(Buffer.from(purpose))
    return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]).toString('base64url')
  }

  test('is opened by each of the secrets, and sealed with the first', () => {
    const sealed = new KeySeal(['old']).seal('console', content)
    const opened = new KeySeal(['new', 'old']).open('console', sealed)
    expect(opened).toEqual({ ...content, id: Buffer.from(sealed, 'base64url').subarray(0, 12).toString('base64url') })
    const renewed = new KeySeal(['new', 'old']).seal('console', content)
    expect(new KeySeal(['new']).open('console', renewed)).toMatchObject(content)
    expect(new KeySeal(['old']).open('console', renewed)).toBeUndefined()
    expect(new KeySeal([]).open('console', renewed)).toBeUndefined()
    expect(() => new KeySeal([]).seal('console', content)).toThrow(RangeError)
  })

  test('hides the key, and differs each time', () => {
    const seal = new KeySeal(['a'])
    const sealed = [seal.seal('console', content), seal.seal('console', content)]
    expect(sealed[0]).toMatch(/^[\w-]+$/)
    expect(Buffer.from(sealed[0] ?? '', 'base64url').includes('stw_')).toBe(false)
    expect(new Set(sealed.map((one) => seal.open('console', one)?.id)).size).toBe(2)
  })

  test('has the form of earlier versions', () => {
    const text = JSON.stringify([content.key, content.expiresAt, false])
    const opened = new KeySeal(['a']).open('operator', sealedByHand('a', 'operator', text))
    expect(opened).toMatchObject({ ...content, isRemembered: false })
  })

  test('is rejected if it is forged, empty, for another purpose or expired', () => {
    const seal = new KeySeal(['a'])
    const sealed = seal.seal('console', content)
    expect(seal.open('operator', sealed)).toBeUndefined()
    for (let at = 0; at < sealed.length - 1; at++) {
      const forged = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1)
      expect(seal.open('console', forged)).toBeUndefined()
    }
    for (const text of ['', 'A'.repeat(28), sealedByHand('a', 'console', '')])
      expect(seal.open('console', text)).toBeUndefined()
    vi.setSystemTime(start + 1)
    expect(seal.open('console', sealed)).toBeUndefined()
  })

  test('in a sign-in link is valid for a day, and not remembered', () => {
    const seal = new KeySeal(['a'])
    expect(seal.open('sign-in link', signInCode(seal, 'stw_1'))).toMatchObject({
      key: 'stw_1',
      expiresAt: start + day,
      isRemembered: false,
    })
  })
})

describe('the watch over keys', () => {
  const key: ApiKey = { id: 'k', app: 'a', hash: '', label: null, createdAt: start, expiresAt: null }
  const answers: (() => Promise<ApiKey | undefined>)[] = []
  const asked: string[] = []
  const getKey = async (id: string) => {
    asked.push(id)
    return await (answers.shift() ?? (async () => key))()
  }
  beforeEach(() => void (answers.splice(0), asked.splice(0)))
  const second = () => vi.advanceTimersByTimeAsync(1000)

  test('asks once a second for all requests of a key, until the last has ended', async () => {
    const watch = watchKeys({ getKey })
    const [first, other, ofAnother] = [watch.follow('k'), watch.follow('k'), watch.follow('l')]
    expect(first.signal).toBe(other.signal)
    expect(getMaxListeners(first.signal)).toBe(Infinity)
    await vi.advanceTimersByTimeAsync(999)
    expect(asked).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(asked).toEqual(['k', 'l'])
    ofAnother.release()
    first.release()
    await second()
    expect(asked).toEqual(['k', 'l', 'k'])
    other.release()
    await second()
    expect(asked).toHaveLength(3)
    expect(vi.getTimerCount()).toBe(0)
    expect(watch.follow('k').signal).not.toBe(first.signal)
    expect(first.signal.aborted).toBe(false)
  })

  test('ends the requests of a key that is gone or has ended, and of no other', async () => {
    const watch = watchKeys({ getKey })
    const { signal } = watch.follow('k')
    answers.push(async () => ({ ...key, expiresAt: start + 1001 }))
    await second()
    expect(signal.aborted).toBe(false)
    answers.push(async () => ({ ...key, expiresAt: start + 2000 }))
    await second()
    expect(signal.aborted).toBe(true)

    const gone = watch.follow('l')
    answers.push(async () => key)
    answers.push(async () => undefined)
    await second()
    expect(gone.signal.aborted).toBe(true)
  })

  test('continues if the store does not answer, and sends no query twice', async () => {
    const watch = watchKeys({ getKey })
    const { signal } = watch.follow('k')
    let answer: ((found: ApiKey | undefined) => void) | undefined
    answers.push(() => Promise.reject(new Error('away')))
    answers.push(() => new Promise((resolve) => (answer = resolve)))
    await second()
    await second()
    await second()
    expect(asked).toHaveLength(2)
    answer?.(key)
    await second()
    expect(asked).toHaveLength(3)
    expect(signal.aborted).toBe(false)
  })

  test('watches a new request of an ended key separately', async () => {
    const watch = watchKeys({ getKey })
    const ended = watch.follow('k')
    answers.push(async () => undefined)
    await second()
    expect(ended.signal.aborted).toBe(true)
    const next = watch.follow('k')
    expect(next.signal.aborted).toBe(false)
    ended.release()
    expect(watch.follow('k').signal).toBe(next.signal)
  })
})
