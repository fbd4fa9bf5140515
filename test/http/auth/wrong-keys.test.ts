import { describe, expect, test } from 'vitest'
import { clientAddress, wrongKeyCounts } from '../../../src/http/routing/wrong-keys.js'
import { generateApiKey } from '../../../src/http/auth/api-key.js'
import { issueKey } from '../../../src/http/index.js'
import { type Service, serviceOfTest, type ServiceSettings } from '../harness.js'

async function start(http: ServiceSettings['http'] = {}): Promise<Service & { lookUps(): number }> {
  const service = await serviceOfTest({
    http: { rateLimits: { wrongKeys: { requests: 5, perSeconds: 600 } }, ...http },
  })
  let lookUps = 0
  const { applications } = service.engine
  const getKey = applications.getKey.bind(applications)
  applications.getKey = (id) => (lookUps++, getKey(id))
  return { ...service, lookUps: () => lookUps }
}

const ask = async (service: Service, key: string, headers: Record<string, string> = {}) =>
  service.api('/application', { key, headers })

describe('wrong keys from one address', () => {
  test('are refused with 429 after some, and no longer looked up', async () => {
    const service = await start()
    const statuses: number[] = []
    for (let index = 0; index < 10; index++) statuses.push((await ask(service, generateApiKey().key)).status)
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429, 429, 429, 429])
    expect(service.lookUps()).toBe(5)
    const refused = await ask(service, generateApiKey().key)
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, expect.closeTo(120, -1)])
    expect(await refused.json()).toMatchObject({ code: 'RATE_LIMITED', message: expect.stringContaining('address') })
  })

  test('do not lock out a valid key that was not used before, or the operator', async () => {
    const operatorKey = 'the-key-of-the-operator'
    const service = await start({ operator: { key: operatorKey } })
    const guess = `${service.app.key.slice(0, -12)}000000000000`
    for (let index = 0; index < 5; index++) expect((await ask(service, guess)).status).toBe(401)
    expect((await ask(service, guess)).status).toBe(429)
    expect((await ask(service, 'some-key-of-another-form')).status).toBe(429)
    expect((await ask(service, service.app.key)).status).toBe(200)

    const overview = async (key?: string) =>
      (await fetch(`${service.base}/operator/api/overview`, { headers: key ? { authorization: key } : {} })).status
    expect([await overview('a-guess'), await overview(), await overview(operatorKey)]).toEqual([429, 401, 200])
  })

  test('do not lock out keys that have worked there, even those that an operator supplied', async () => {
    const service = await start()
    const brought = 'a key of the operator'
    await issueKey(service.engine.applications, service.app.id, { key: brought })
    for (const key of [service.app.key, brought]) expect((await ask(service, key)).status).toBe(200)
    for (let index = 0; index < 6; index++) await ask(service, generateApiKey().key)
    for (const key of [service.app.key, brought]) expect((await ask(service, key)).status).toBe(200)
    const { key } = await issueKey(service.engine.applications, service.app.id)
    expect((await ask(service, key)).status).toBe(429)
  })

  test('are counted by the address that a trusted proxy has seen, not by one that the client writes', async () => {
    const service = await start({ trustProxy: true })
    const from = async (forwarded: string) =>
      (await ask(service, generateApiKey().key, { 'x-forwarded-for': forwarded })).status
    for (let index = 0; index < 5; index++) expect(await from(`10.0.0.${index}, 203.0.113.1`)).toBe(401)
    expect(await from('10.9.9.9, 203.0.113.1')).toBe(429)
    expect(await from('203.0.113.1, 203.0.113.2')).toBe(401)

    const direct = await start()
    for (let index = 0; index < 5; index++)
      await ask(direct, generateApiKey().key, { 'x-forwarded-for': `203.0.113.${index}` })
    expect((await ask(direct, generateApiKey().key, { 'x-forwarded-for': '203.0.113.99' })).status).toBe(429)
  })

  test('do not matter if no key is needed', async () => {
    const service = await start()
    for (let index = 0; index < 10; index++) expect((await fetch(`${service.base}/application`)).status).toBe(401)
  })

  test('are forgiven with time, in memory that is bounded', () => {
    let now = 0
    const wrong = wrongKeyCounts({ requests: 2, perSeconds: 60 }, () => now)
    const isRefused = (address: string) => {
      try {
        wrong.refuseExcess(address, 'any')
        return false
      } catch {
        return true
      }
    }
    wrong.count('a', 'any')
    wrong.count('a', 'any')
    expect([isRefused('a'), isRefused('b')]).toEqual([true, false])
    now = 30_000
    expect(isRefused('a')).toBe(false)
    now = 0
    // The address counted longest ago is evicted.
    for (let index = 0; index < 10_000; index++) wrong.count(`address ${index}`, 'any')
    expect(isRefused('a')).toBe(false)
  })
})

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:0db8:0000:0000:ffff::', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
])('the client address of %s is %s', (remoteAddress, expected) => {
  const request = { headers: new Headers(), remoteAddress } as unknown as Parameters<typeof clientAddress>[0]
  expect(clientAddress(request, false)).toBe(expected)
})
