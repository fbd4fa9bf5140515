import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, serviceOfTest, startService } from '../harness.js'

let service: Service
beforeAll(async () => {
  service = await startService({ http: { manageKeys: true } })
})
afterAll(() => service.close())

interface Key {
  id: string
  key: string
  label: string | null
  isCurrent: boolean
}
const post = (label: string | null, key?: string) =>
  service.api('/application/key', { method: 'POST', body: JSON.stringify({ label }), key })
const list = async (key?: string) =>
  ((await (await service.api('/application/key', { key })).json()) as { keys: Key[] }).keys

describe('keys of the own application', () => {
  test('are made, listed and ended while the service runs', async () => {
    const made = (await (await post('Laptop')).json()) as Key
    expect(made.key).toMatch(/^stw_/)
    const keys = await list(made.key)
    expect(keys.map(({ label, isCurrent }) => [label, isCurrent])).toEqual([
      ['Laptop', true],
      [null, false],
    ])
    expect(JSON.stringify(keys)).not.toContain(made.key)
    expect((await service.api(`/application/key/${made.id}`, { method: 'DELETE' })).status).toBe(200)
    expect((await service.api('/application', { key: made.key })).status).toBe(401)
    expect(await list()).toHaveLength(1)
  })

  test('cannot revoke themselves, or keys of another application', async () => {
    const [own] = await list()
    expect((await service.api(`/application/key/${own!.id}`, { method: 'DELETE' })).status).toBe(409)
    const other = await service.addApplication('Other')
    const path = `/application/key/${own!.id}`
    expect((await service.api(path, { method: 'DELETE', key: other.key })).status).toBe(404)
    expect((await service.api('/application')).status).toBe(200)
  })

  test('are at most 100 at a time', async () => {
    const { key } = await service.addApplication('Greedy')
    for (let count = 1; count < 100; count++) expect((await post(null, key)).status).toBe(200)
    expect((await post(null, key)).status).toBe(409)
  })

  test('are forgotten some time after they were revoked, so that they cannot fill the store', async () => {
    const { id: app, key } = await service.addApplication('Rotating')
    const { applications } = service.engine
    const ended = Array.from({ length: 105 }, (_, n) => ({
      id: `rotating-${n}`,
      app,
      hash: 'none',
      label: null,
      createdAt: n,
      expiresAt: n + 1,
    }))
    await Promise.all(ended.map((each) => applications.putKey(each)))
    expect((await post('new', key)).status).toBe(200)
    const left = (await applications.listKeys(app)).filter(({ expiresAt }) => expiresAt !== null)
    expect(left).toEqual(ended.slice(5).toReversed())
    expect(await list(key)).toHaveLength(2)
  })

  test('are managed only if the host turns it on', async () => {
    const plain = await serviceOfTest()
    expect((await plain.api('/application/key')).status).toBe(404)
  })
})
