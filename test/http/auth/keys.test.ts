import crypto from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import type { AddressInfo } from 'node:net'
import { crc32 } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { fingerprint, generateApiKey } from '../../../src/http/auth/api-key.js'
import { createApplication, issueKey, revokeKey, rotateKey } from '../../../src/http/index.js'
import { listener, serve } from '../../../src/http/mounts/node.js'
import { recordingLogger } from '../../engine/harness.js'
import { type Service, serviceOfTest, startService } from '../harness.js'
import { rawRequest } from '../mounts/raw-request.js'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const status = async (key: string, of: Service = service) => (await of.api('/application', { key })).status

describe('API keys', () => {
  test('consist of prefix, public id, 32 random bytes and a checksum, and are stored as a hash', async () => {
    const { key, id, hash } = generateApiKey()
    expect(key).toMatch(/^stw_[0-9a-f]{16}_[A-Za-z0-9_-]{43}[0-9a-f]{8}$/)
    expect(fingerprint(key)).toEqual({ id, hash })
    const records = await service.engine.applications.listKeys(service.app.id)
    expect(JSON.stringify(records)).not.toContain(service.app.key.slice(21))
  })

  test('an application may have several, and each works', async () => {
    const { key } = await issueKey(service.engine.applications, service.app.id, { label: 'second' })
    expect([await status(key), await status(service.app.key)]).toEqual([200, 200])
  })

  test('rotation lets the old one work during the overlap only', async () => {
    const first = await issueKey(service.engine.applications, service.app.id)
    const second = await rotateKey(service.engine.applications, first.record.id, { overlapMs: 60_000 })
    expect([await status(first.key), await status(second.key)]).toEqual([200, 200])
    const third = await rotateKey(service.engine.applications, second.record.id, { overlapMs: 0 })
    expect([await status(second.key), await status(third.key)]).toEqual([401, 200])
    await expect(rotateKey(service.engine.applications, second.record.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('revocation works at once', async () => {
    const { key, record } = await issueKey(service.engine.applications, service.app.id)
    expect(await status(key)).toBe(200)
    await revokeKey(service.engine.applications, record.id)
    expect(await status(key)).toBe(401)
  })

  test('a key that is in use stops working as soon as the store holds another hash for it, and only then', async () => {
    const { key, record } = await issueKey(service.engine.applications, service.app.id)
    expect([await status(key), await status(key)]).toEqual([200, 200])
    await service.engine.applications.putKey({ ...record, hash: '0'.repeat(64) })
    expect([await status(key), await status(key)]).toEqual([401, 401])
    await service.engine.applications.putKey(record)
    expect(await status(key)).toBe(200)
  })

  test('a key in use costs one read of the store, finds its application, and shows a new name at once', async () => {
    const { applications } = service.engine
    const application = await createApplication(applications, { name: 'Before' })
    const { key, record } = await issueKey(applications, application.id)
    const id = '00000000-0000-4000-8000-000000000000'
    expect((await service.api(`/job/${id}/status`, { key })).status).toBe(404)
    const reads = [vi.spyOn(applications, 'getKey'), vi.spyOn(applications, 'getApplication')]
    expect((await service.api(`/job/${id}/status`, { key })).status).toBe(404)
    expect(reads.map(({ mock }) => mock.calls.length)).toEqual([1, 0])
    vi.restoreAllMocks()
    await applications.putApplication({ ...application, name: 'After' })
    expect(await (await service.api('/application', { key })).json()).toEqual({ id: application.id, name: 'After' })
    // This library never does so, but the store decides to whom a key belongs.
    await applications.putKey({ ...record, app: service.app.id })
    expect(await (await service.api('/application', { key })).json()).toMatchObject({ id: service.app.id })
  })

  test('an operator may bring keys of any form, but not short ones, foreign ones or broken ones of ours', async () => {
    const own = '0b5e8c1e-6f0f-4b53-9e4f-1f8d6f3a2b10'
    const { key } = await issueKey(service.engine.applications, service.app.id, { key: own })
    expect(await status(key)).toBe(200)
    expect(await status(`${own.slice(0, -1)}1`)).toBe(401)
    const other = await createApplication(service.engine.applications, { name: 'Other' })
    await expect(issueKey(service.engine.applications, other.id, { key: own })).rejects.toMatchObject({
      code: 'ALREADY_EXISTS',
    })
    await expect(issueKey(service.engine.applications, other.id, { key: 'short' })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    await expect(
      issueKey(service.engine.applications, other.id, { key: `stw_${'x'.repeat(40)}` }),
    ).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    await expect(issueKey(service.engine.applications, 'nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('checking does the same work for a wrong secret as for an unknown id', async () => {
    const forge = (id: string) => {
      const body = `stw_${id}_${'A'.repeat(43)}`
      return body + checksum(body)
    }
    const counts = { hash: 0, timingSafeEqual: 0 }
    const { hash, timingSafeEqual } = crypto
    crypto.hash = ((...given: Parameters<typeof hash>) => (counts.hash++, hash(...given))) as typeof hash
    crypto.timingSafeEqual = (a, b) => (counts.timingSafeEqual++, timingSafeEqual(a, b))
    syncBuiltinESMExports()
    const lookUp = vi.spyOn(service.engine.applications, 'getKey')
    const workFor = async (key: string) => {
      Object.assign(counts, { hash: 0, timingSafeEqual: 0 })
      lookUp.mockClear()
      expect(await status(key)).toBe(401)
      return { ...counts, lookUps: lookUp.mock.calls.length }
    }
    try {
      const work = { hash: 1, timingSafeEqual: 1, lookUps: 1 }
      expect(await workFor(forge(service.app.key.slice(4, 20)))).toEqual(work)
      expect(await workFor(forge('0'.repeat(16)))).toEqual(work)
    } finally {
      lookUp.mockRestore()
      Object.assign(crypto, { hash, timingSafeEqual })
      syncBuiltinESMExports()
    }
  })
})

test('an application may not have an id that cannot be one: its uploads would lie among those of another', async () => {
  const { applications } = service.engine
  const id = `${service.app.id}/b`
  await expect(createApplication(applications, { name: 'B', id })).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
    message: expect.stringContaining('id: must have 1 to 128 letters'),
  })
  expect(await applications.getApplication(id)).toBeUndefined()
})

describe('who may call', () => {
  test("is decided by the host's own check, if there is one", async () => {
    const own = await serviceOfTest({
      http: {
        authenticate: (request) =>
          request.headers.get('x-user') === 'mia' ? { id: 'user-mia', name: 'Mia' } : undefined,
      },
    })
    expect(await (await fetch(`${own.base}/application`, { headers: { 'x-user': 'mia' } })).json()).toEqual({
      id: 'user-mia',
      name: 'Mia',
    })
    expect(await status(own.app.key, own)).toBe(401)
  })

  test('is an error of the service when the check returns an id that cannot be one', async () => {
    const { logger, lines } = recordingLogger()
    const authenticate = () => ({ id: '../mia', name: 'Mia' })
    const own = await serviceOfTest({ engine: { logger }, http: { authenticate } })
    expect(await status('x', own)).toBe(500)
    const message = expect.stringMatching(/not \{"id":"\.\.\/mia","name":"Mia"\}\. id: must have .+ Encode ids /)
    expect(lines).toContainEqual(
      expect.objectContaining({ fields: expect.objectContaining({ err: expect.objectContaining({ message }) }) }),
    )
  })

  test('can be everyone without a key, if the host allows it, but not with a wrong key', async () => {
    const own = await serviceOfTest({ http: { anonymous: { id: 'local', name: 'Local' } } })
    expect(await (await fetch(`${own.base}/application`)).json()).toEqual({ id: 'local', name: 'Local' })
    expect(await status('wrong', own)).toBe(401)
    expect(await status(own.app.key, own)).toBe(200)
  })

  test.each([
    ['127.0.0.1', 400],
    ['0.0.0.0', 200],
  ])('asks for no name on a server of the host, and on one of ours at %s answers %i', async (host, expected) => {
    const { handler } = await serviceOfTest({ http: { anonymous: { id: 'local', name: 'Local' } } })
    const asked = ['GET /v1/application HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n']
    const ours = await serve(handler, { host, port: 0 })
    onTestFinished(() => ours.close())
    expect(await rawRequest(`http://127.0.0.1:${ours.port}`, asked)).toMatchObject({ status: expected })
    const theirs = createServer(listener(handler)).listen(0, host)
    onTestFinished(() => void theirs.close())
    await once(theirs, 'listening')
    const { port } = theirs.address() as AddressInfo
    expect(await rawRequest(`http://127.0.0.1:${port}`, asked)).toMatchObject({ status: 200 })
  })

  test.each([
    ['localhost', {}, 200],
    ['service.localhost:8080', {}, 200],
    ['[::1]:8080', {}, 200],
    ['192.168.1.7', {}, 200],
    ['rebound.example', {}, 400],
    ['127.0.0.1.rebound.example:8080', {}, 400],
    ['localhost.rebound.example', {}, 400],
    ['stems.example', { publicUrl: 'https://stems.example/v1' }, 200],
    ['stems.example', { trustProxy: true }, 200],
  ])('asks nobody on its own machine for a key, but as %s with %o answers %i', async (host, options, expected) => {
    const own = await serviceOfTest({ http: { anonymous: { id: 'local', name: 'Local' }, ...options } })
    const head = `GET ${new URL(own.base).pathname}/application HTTP/1.1\r\nHost: ${host}\r\n`
    expect(await rawRequest(own.base, [`${head}Connection: close\r\n\r\n`])).toMatchObject({
      status: expected,
      body: expect.stringContaining(expected === 200 ? 'Local' : 'publicUrl'),
    })
  })
})

function checksum(body: string): string {
  return crc32(body).toString(16).padStart(8, '0')
}
