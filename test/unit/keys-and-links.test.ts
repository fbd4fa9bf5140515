import { createHash, createHmac } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { memoryApplications } from '../../src/adapters/memory.js'
import { newWebhookSecret } from '../../src/core/engine/webhooks/signature.js'
import { addressGroup } from '../../src/http/auth/address-group.js'
import {
  codesOf,
  fingerprint,
  generateApiKey,
  isOwnForm,
  publicPart,
  sameHash,
  sameText,
} from '../../src/http/auth/api-key.js'
import {
  createApplication,
  issueKey,
  revokeKey,
  rotateKey,
  rotateWebhookSecret,
} from '../../src/http/auth/applications.js'
import { KnownKeys } from '../../src/http/auth/known-keys.js'
import { type Grant, UrlSigner } from '../../src/http/auth/signed-url.js'

const start = 1_700_000_000_000
const day = 86_400_000
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'], now: start }))
afterEach(() => void vi.useRealTimers())
const after = (ms: number) => void vi.setSystemTime(Date.now() + ms)
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

describe('an API key', () => {
  test('of ours has a public part and a checksum', () => {
    const { key, id, hash } = generateApiKey()
    expect(key).toMatch(/^stw_[0-9a-f]{16}_[A-Za-z0-9_-]{43}[0-9a-f]{8}$/)
    expect(publicPart(key)).toBe(`stw_${id}`)
    expect(key.slice(-8)).toBe(crc32(key.slice(0, -8)).toString(16).padStart(8, '0'))
    expect(fingerprint(key)).toEqual({ id, hash })
    expect(hash).toBe(sha256(key))
    expect(fingerprint(`${key.slice(0, -9)}${key.at(-9) === 'x' ? 'y' : 'x'}${key.slice(-8)}`)).toBeUndefined()
    expect(fingerprint(`${key}0`)).toBeUndefined()
    // A checksum that begins with exactly one zero.
    const bodies = Array.from({ length: 1000 }, (_, n) => `stw_${id}_${String(n).padStart(43, '0')}`)
    const short = bodies.find((body) => crc32(body) < 0x1000_0000 && crc32(body) >= 0x100_0000) ?? ''
    expect(fingerprint(`${short}0${crc32(short).toString(16)}`)).toMatchObject({ id })
  })

  test('of an operator may have 16 to 512 characters, and not the form of ours', () => {
    for (const key of ['k'.repeat(16), 'k'.repeat(512)]) {
      const hash = sha256(key)
      expect(fingerprint(key)).toEqual({ id: `own-${hash.slice(0, 16)}`, hash })
    }
    for (const key of ['', 'k'.repeat(15), 'k'.repeat(513), `stw_${'k'.repeat(20)}`])
      expect(fingerprint(key)).toBeUndefined()
    expect([isOwnForm(generateApiKey().key), isOwnForm('k'.repeat(16))]).toEqual([true, false])
  })

  test('is compared as a whole', () => {
    expect([sameHash('abc', 'abc'), sameHash('abc', 'abd'), sameHash('abc', 'ab'), sameHash('', 'a')]).toEqual([
      true,
      false,
      false,
      false,
    ])
    const same = (a: string, b: string) => sameText(a, codesOf(b))
    expect([same('abc', 'abc'), same('', ''), same('abc', 'abd'), same('xbc', 'abc')]).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect([same('abc', 'ab'), same('ab', 'abc'), same('ab\u0000', 'ab'), same('ab', 'ab\u0000')]).toEqual([
      false,
      false,
      false,
      false,
    ])
  })
})

describe('keys that were verified', () => {
  const caller = { id: 'a', name: 'A' }

  test('are known until they are removed, but not others with the same public part', () => {
    const keys = new KnownKeys()
    const { key, id, hash } = generateApiKey()
    expect(keys.find(key)).toBeUndefined()
    keys.add(key, { print: { id, hash }, caller })
    expect(keys.find(key)).toMatchObject({ print: { id, hash }, caller })
    expect(keys.find(`${key.slice(0, -1)}x`)).toBeUndefined()
    expect(keys.hasSupplied(id)).toBe(false)
    keys.remove(key)
    expect(keys.find(key)).toBeUndefined()
  })

  test('of operators are known by their id', () => {
    const keys = new KnownKeys()
    keys.add('k'.repeat(16), { print: { id: 'own-1', hash: '' }, caller })
    expect([keys.hasSupplied('own-1'), keys.hasSupplied('own-2'), keys.find('k'.repeat(16))]).toEqual([
      true,
      false,
      undefined,
    ])
  })

  test('are forgotten, the oldest first, beyond a thousand', () => {
    const keys = new KnownKeys()
    const ours = Array.from({ length: 1001 }, (_, n) => ({
      key: `stw_${String(n).padStart(16, '0')}_x`,
      id: String(n).padStart(16, '0'),
    }))
    const known = (n: number) => keys.find(ours[n]!.key) !== undefined
    for (const [n, { key, id }] of ours.entries()) {
      keys.add(key, { print: { id, hash: '' }, caller })
      keys.add('k', { print: { id: `own-${n}`, hash: '' }, caller })
      if (n === 999) expect([known(0), keys.hasSupplied('own-0')]).toEqual([true, true])
    }
    expect([known(0), known(1), known(1000)]).toEqual([false, true, true])
    expect(['own-0', 'own-1', 'own-1000'].map((id) => keys.hasSupplied(id))).toEqual([false, true, true])
  })
})

describe('applications and their keys', () => {
  const stored = async () => {
    const store = memoryApplications()
    const application = await createApplication(store, { name: 'A', id: 'a' })
    return { store, application }
  }

  test('are created with an id, a webhook and a secret, or with what was given', async () => {
    const { store, application } = await stored()
    expect(application).toEqual({
      id: 'a',
      name: 'A',
      createdAt: start,
      webhook: null,
      webhookSecrets: [{ secret: expect.stringMatching(/^whsec_/), expiresAt: null }],
    })
    expect(await store.getApplication('a')).toEqual(application)
    const secret = newWebhookSecret()
    const webhook = { url: 'https://x.test/', secret, events: ['job.failed'] }
    const other = await createApplication(store, { name: 'B', webhook })
    expect(other).toMatchObject({ webhook: { url: webhook.url, events: ['job.failed'] }, webhookSecrets: [{ secret }] })
    expect(other.id).toMatch(/^[0-9a-f-]{36}$/)
    const short = createApplication(store, { name: 'C', id: 'c', webhook: { url: 'https://x.test/', secret: 'short' } })
    await expect(short).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(await store.getApplication('c')).toBeUndefined()
  })

  test('need a name, even without a compiler', async () => {
    const store = memoryApplications()
    for (const input of [undefined, {}, { name: 5 }, { name: '' }])
      await expect(createApplication(store, input as never)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(await store.listApplications()).toEqual([])
  })

  test('change their webhook secret; old ones sign for a day, at most three of them', async () => {
    const { store, application } = await stored()
    const [first] = application.webhookSecrets
    const secrets = async () => (await store.getApplication('a'))?.webhookSecrets
    const second = await rotateWebhookSecret(store, 'a')
    expect(await secrets()).toEqual([
      { secret: second, expiresAt: null },
      { ...first, expiresAt: start + day },
    ])
    after(1000)
    const given = newWebhookSecret()
    expect(await rotateWebhookSecret(store, 'a', { secret: given, overlapMs: 5000 })).toBe(given)
    expect(await secrets()).toEqual([
      { secret: given, expiresAt: null },
      { secret: second, expiresAt: start + 6000 },
      { ...first, expiresAt: start + 6000 },
    ])
    // The same secret again is not listed twice.
    await rotateWebhookSecret(store, 'a', { secret: given })
    expect((await secrets())?.map(({ secret }) => secret)).toEqual([given, second, first?.secret])
    after(5000)
    await rotateWebhookSecret(store, 'a')
    expect((await secrets())?.length).toBe(2)
    for (let n = 0; n < 4; n++) await rotateWebhookSecret(store, 'a')
    expect((await secrets())?.length).toBe(4)
    await rotateWebhookSecret(store, 'a', { overlapMs: 0 })
    expect((await secrets())?.length).toBe(1)
    await expect(rotateWebhookSecret(store, 'a', { secret: 'short' })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    await expect(rotateWebhookSecret(store, 'none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const old = { id: 'old', name: 'O', createdAt: 0, webhook: null }
    await store.putApplication(old)
    await rotateWebhookSecret(store, 'old')
    expect((await store.getApplication('old'))?.webhookSecrets?.length).toBe(1)
  })

  test('get keys of their own, or unique ones that the operator supplies', async () => {
    const { store } = await stored()
    await createApplication(store, { name: 'B', id: 'b' })
    const { key, record } = await issueKey(store, 'a')
    expect(record).toEqual({ ...fingerprint(key), app: 'a', label: null, createdAt: start, expiresAt: null })
    expect(await store.getKey(record.id)).toEqual(record)
    const given = { key: 'k'.repeat(16), label: 'L', expiresAt: start + 5 }
    const brought = await issueKey(store, 'a', given)
    expect(brought).toMatchObject({ key: given.key, record: { label: 'L', expiresAt: start + 5, createdAt: start } })
    after(1000)
    expect((await issueKey(store, 'a', { key: given.key })).record).toMatchObject({ createdAt: start, expiresAt: null })
    await expect(issueKey(store, 'b', { key: given.key })).rejects.toMatchObject({ code: 'ALREADY_EXISTS' })
    await expect(issueKey(store, 'a', { key: 'short' })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    await expect(issueKey(store, 'none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('replace a key, which then works for a day or until its end, but not one that has ended', async () => {
    const { store } = await stored()
    const expiry = async (id: string) => (await store.getKey(id))?.expiresAt
    const { record } = await issueKey(store, 'a', { label: 'L' })
    const successor = await rotateKey(store, record.id)
    expect(successor.record).toMatchObject({ app: 'a', label: 'L', expiresAt: null })
    expect(await expiry(record.id)).toBe(start + day)
    await rotateKey(store, successor.record.id, { overlapMs: 50 })
    expect(await expiry(successor.record.id)).toBe(start + 50)
    await rotateKey(store, successor.record.id)
    expect(await expiry(successor.record.id)).toBe(start + 50)
    after(50)
    await expect(rotateKey(store, successor.record.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(rotateKey(store, 'none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test.each([NaN, '1d' as never])('do not become valid for ever by a time of %s', async (time) => {
    const { store } = await stored()
    const { record } = await issueKey(store, 'a', { expiresAt: start + day })
    const refusal = { code: 'INVALID_OPTIONS', message: expect.stringContaining('must be a number of milliseconds') }
    await expect(rotateKey(store, record.id, { overlapMs: time })).rejects.toMatchObject(refusal)
    await expect(issueKey(store, 'a', { expiresAt: time })).rejects.toMatchObject(refusal)
    await expect(rotateWebhookSecret(store, 'a', { overlapMs: time })).rejects.toMatchObject(refusal)
    expect(await store.getKey(record.id)).toMatchObject({ expiresAt: start + day })
  })

  test('stay revoked, even if that happens while they are rotated', async () => {
    const store = memoryApplications()
    const { id } = await createApplication(store, { name: 'A' })
    const { record } = await issueKey(store, id)
    const putKey: typeof store.putKey = async (key) => {
      await store.putKey(key)
      if (key.id !== record.id) await revokeKey(store, record.id)
    }
    await rotateKey({ ...store, putKey }, record.id)
    expect(await store.getKey(record.id)).toMatchObject({ expiresAt: start })
  })

  test('end a key at once, and do not change one that has ended', async () => {
    const { store } = await stored()
    const { record } = await issueKey(store, 'a')
    const revoked = { ...record, expiresAt: start }
    expect(await revokeKey(store, record.id)).toEqual(revoked)
    expect(await store.getKey(record.id)).toEqual(revoked)
    after(1000)
    expect(await revokeKey(store, record.id)).toEqual(revoked)
    const later = await issueKey(store, 'a', { expiresAt: start + day })
    expect(await revokeKey(store, later.record.id)).toMatchObject({ expiresAt: start + 1000 })
    await expect(revokeKey(store, 'none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('a signed link', () => {
  const grant: Grant = { method: 'GET', key: 'results/j/1/a.wav', expiresAt: 1_800_000_000, maxBytes: 0, app: 'a' }
  const signer = new UrlSigner(['new secret', 'öld secret'])
  const id = (secret: string) => sha256(`stemwork link key ${secret}`).slice(0, 8)
  const changed = (query: URLSearchParams, change: (query: URLSearchParams) => void) => {
    const other = new URLSearchParams(query)
    change(other)
    return other
  }

  test('has the form that other nodes and versions read', () => {
    const forms: [Partial<Grant>, string, string[]][] = [
      [{}, '1', []],
      [{ keyId: 'k' }, '2', ['k']],
      [{ fileName: 'n.wav' }, '3', ['n.wav']],
      [{ keyId: 'k', fileName: 'n.wav' }, '3', ['k', 'n.wav']],
    ]
    for (const secret of ['new secret', 'öld secret'])
      for (const [fields, version, more] of forms) {
        const query = new UrlSigner([secret]).sign({ ...grant, ...fields })
        const signed = ['stemwork-link', version, id(secret), 'GET', grant.key, '1800000000', '0', 'a', ...more]
        expect(Object.fromEntries(query)).toEqual({
          v: version,
          app: 'a',
          expires: '1800000000',
          ...(fields.keyId ? { holder: 'k' } : {}),
          ...(fields.fileName ? { name: 'n.wav' } : {}),
          key: id(secret),
          signature: createHmac('sha256', Buffer.from(secret)).update(JSON.stringify(signed)).digest('base64url'),
        })
        expect(signer.verify('GET', grant.key, query)).toEqual({ ...grant, ...fields })
      }
    const upload = { ...grant, method: 'PUT' as const, maxBytes: 10 }
    const query = signer.sign(upload)
    expect([query.get('limit'), query.get('key')]).toEqual(['10', id('new secret')])
    expect(signer.verify('PUT', grant.key, query)).toEqual(upload)
    expect(() => new UrlSigner([]).sign(grant)).toThrow(RangeError)
    expect(new UrlSigner([]).verify('GET', grant.key, query)).toBeUndefined()
  })

  test('allows nothing when any part of it was changed, left out or doubled', () => {
    const upload = { ...grant, method: 'PUT' as const, maxBytes: 10, keyId: 'k', fileName: 'n' }
    const query = signer.sign(upload)
    expect(signer.verify('PUT', grant.key, query)).toEqual(upload)
    for (const name of query.keys()) {
      for (const change of [
        (other: URLSearchParams) => other.set(name, `${query.get(name)}0`),
        (other: URLSearchParams) => other.set(name, ''),
        (other: URLSearchParams) => other.delete(name),
        (other: URLSearchParams) => other.append(name, query.get(name) ?? ''),
      ])
        expect(signer.verify('PUT', grant.key, changed(query, change)), name).toBeUndefined()
    }
    expect(signer.verify('GET', grant.key, query)).toBeUndefined()
    expect(signer.verify('PUT', `${grant.key}x`, query)).toBeUndefined()
    expect(new UrlSigner(['another']).verify('PUT', grant.key, query)).toBeUndefined()
  })

  test('has numbers in one form only', () => {
    for (const expires of ['01800000000', '1.8e9', ' 1800000000', '-1', '1'.repeat(17)]) {
      const query = changed(signer.sign(grant), (other) => other.set('expires', expires))
      expect(signer.verify('GET', grant.key, query)).toBeUndefined()
    }
    for (const expiresAt of [0, 9_000_000_000_000_000])
      expect(signer.verify('GET', grant.key, signer.sign({ ...grant, expiresAt }))).toMatchObject({ expiresAt })
  })
})

test('one client is an IPv4 address or an IPv6 network of 64 bits, however it is written', () => {
  for (const address of ['1.2.3.4', 'unknown']) expect(addressGroup(address)).toBe(address)
  expect([addressGroup('::ffff:1.2.3.4'), addressGroup('::FFFF:1.2.3.4')]).toEqual(['1.2.3.4', '1.2.3.4'])
  const groups: [string, string][] = [
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::', '2001:db8:1:2::/64'],
    ['2001:db8::', '2001:db8:0:0::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['2001:db8::2:3:4:5:6', '2001:db8:0:2::/64'],
    ['2001:db8:1::2:3:4:5', '2001:db8:1:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::2:3:4:5:6:7:8', '0:2:3:4::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['fe80::1%a:b:c:d:e:f', 'fe80:0:0:0::/64'],
  ]
  for (const [address, group] of groups) expect(addressGroup(address), address).toBe(group)
})
