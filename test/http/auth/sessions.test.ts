import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KeySeal, signInCode } from '../../../src/http/auth/sealed-key.js'
import { issueKey, revokeKey } from '../../../src/http/index.js'
import { type Service, serviceOfTest, startService } from '../harness.js'

const secret = 'a-secret-of-the-tests-of-sessions'
/** Name of the application of `startService`. */
const name = 'Test application'
const operatorKey = 'the-key-of-the-operator'

describe("a page's session", () => {
  let service: Service
  beforeAll(async () => {
    service = await startService({ http: { console: true, operator: { key: operatorKey }, secrets: [secret] } })
  })
  afterAll(() => service.close())

  interface Asked {
    method?: string
    cookie?: string
    body?: object
    headers?: Record<string, string>
  }

  /** Sends requests like the service's page, unless the headers say otherwise. */
  const ask = (path: string, { method = 'GET', cookie = '', body, headers }: Asked = {}) => {
    const all = {
      origin: new URL(service.base).origin,
      'sec-fetch-site': 'same-origin',
      cookie,
      'content-type': body ? 'application/json' : '',
      ...headers,
    }
    return fetch(service.base + path, {
      method,
      headers: Object.entries(all).filter(([, value]) => value !== ''),
      body: body && JSON.stringify(body),
    })
  }
  const cookieOf = (response: Response) => response.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
  const signIn = (body: object, headers?: Record<string, string>, path = '/session') =>
    ask(path, { method: 'POST', body, headers })

  test('is in a cookie that no script can read, no other site can send, and no other path gets', async () => {
    const response = await signIn({ key: service.app.key })
    expect([response.status, await response.json()]).toEqual([200, { application: name }])
    const set = response.headers.get('set-cookie') ?? ''
    expect(set.replace(/=[^;]+/, '=')).toBe('stemwork-console=; HttpOnly; SameSite=Strict')
    // The cookie reveals neither the key nor its hash.
    expect(Buffer.from(cookieOf(response), 'base64url').toString('latin1')).not.toContain(service.app.key.slice(4, 20))
    const cookie = cookieOf(response)
    expect(await (await ask('/session', { cookie })).json()).toEqual({
      application: name,
      session: { isRemembered: false },
    })
    expect((await ask('/job', { cookie })).status).toBe(200)
    // A cookie of another service on the origin comes last, and does no harm.
    expect((await ask('/job', { cookie: `x=1; ${cookie}; stemwork-console=of-another` })).status).toBe(200)
  })

  test('lasts if requested, and is secure if the page came by https', async () => {
    const headers = { origin: `https://${new URL(service.base).host}` }
    const lasting = (await signIn({ key: service.app.key, remember: true }, headers)).headers.get('set-cookie') ?? ''
    expect(lasting).toMatch(/; HttpOnly; SameSite=Strict; Max-Age=15552000; Secure$/)
    const cookie = lasting.split(';', 1)[0] ?? ''
    const changed = await ask('/session', { method: 'POST', cookie, body: { remember: false } })
    expect(changed.headers.get('set-cookie')).not.toContain('Max-Age')
    const ended = await ask('/session', { method: 'DELETE', cookie })
    expect([ended.status, ended.headers.get('set-cookie')]).toEqual([
      204,
      'stemwork-console=; HttpOnly; SameSite=Strict; Max-Age=0',
    ])
  })

  test.each([
    ['of another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['of a sibling', { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' }],
  ])('does not count for a request that a page %s makes', async (_whose, headers) => {
    const cookie = cookieOf(await signIn({ key: service.app.key }))
    const body = { workflow: 'service/quick', params: {} }
    for (const known of [headers, { ...headers, 'sec-fetch-site': '' }])
      expect((await ask('/job', { method: 'POST', cookie, body, headers: known })).status).toBe(401)
    expect((await ask('/job', { cookie, headers })).status).toBe(401)
    expect((await signIn({ key: service.app.key }, headers)).status).toBe(400)
    expect((await ask('/session', { method: 'DELETE', headers })).status).toBe(400)
    // The key in the header remains valid.
    expect((await ask('/job', { headers: { ...headers, authorization: service.app.key } })).status).toBe(200)
  })

  test('ends with its key, and needs a right one', async () => {
    const { key, record } = await issueKey(service.engine.applications, service.app.id)
    const cookie = cookieOf(await signIn({ key }))
    expect((await ask('/job', { cookie })).status).toBe(200)
    await revokeKey(service.engine.applications, record.id)
    expect((await ask('/job', { cookie })).status).toBe(401)
    const wrong = await signIn({ key: 'a-key-that-nobody-made' })
    expect([wrong.status, wrong.headers.get('set-cookie')]).toEqual([401, null])
    expect((await signIn({})).status).toBe(401)
  })

  test('can be opened by a code, once, which says beforehand whose songs it leads to', async () => {
    const made = await service.api('/session/code', { method: 'POST', body: JSON.stringify({ key: service.app.key }) })
    const { code } = (await made.json()) as { code: string }
    for (let times = 0; times < 2; times++)
      expect(await (await signIn({ code }, undefined, '/session/offer')).json()).toEqual({
        application: name,
      })
    const answers = await Promise.all([signIn({ code }), signIn({ code }), signIn({ code })])
    expect(answers.map(({ ok, status }) => ok || status).filter((one) => one !== 409)).toEqual([true])
    const cookie = cookieOf(answers.find(({ ok }) => ok) ?? new Response())
    expect((await ask('/job', { cookie })).status).toBe(200)

    const forged = signInCode(new KeySeal(['another-secret-of-32-characters..']), service.app.key)
    for (const bad of [forged, `${code.slice(0, -1)}${code.endsWith('A') ? 'B' : 'A'}`.slice(1), 'x', cookie.slice(17)])
      expect((await signIn({ code: bad })).status).toBe(400)
    const { key } = await service.addApplication('Another')
    const others = await service.api('/session/code', { method: 'POST', body: JSON.stringify({ key }) })
    expect(others.status).toBe(400)
  })

  test('of the operator is separate, for the page of the operator', async () => {
    const response = await signIn({ key: operatorKey }, undefined, '/operator/session')
    expect(response.headers.get('set-cookie')).toMatch(/^stemwork-operator=[\w-]+; HttpOnly; SameSite=Strict$/)
    const cookie = cookieOf(response)
    expect((await ask('/operator/api/overview', { cookie })).status).toBe(200)
    const elsewhere = { 'sec-fetch-site': 'cross-site' }
    expect((await ask('/operator/api/overview', { cookie, headers: elsewhere })).status).toBe(401)
    expect((await ask('/job', { cookie: cookie.replace('operator', 'console') })).status).toBe(401)
    expect((await signIn({ key: service.app.key }, undefined, '/operator/session')).status).toBe(401)
  })
})

test('the check of a host sees the key of a session as if it were in the header', async () => {
  const seen: (string | null)[] = []
  const service = await serviceOfTest({
    http: {
      console: true,
      authenticate({ headers }) {
        seen.push(headers.get('authorization'))
        return headers.get('authorization') === 'ticket of Ann' ? { id: 'ann', name: 'Ann' } : undefined
      },
    },
  })
  const headers = { origin: new URL(service.base).origin, 'content-type': 'application/json' }
  const body = JSON.stringify({ key: 'ticket of Ann' })
  const response = await fetch(`${service.base}/session`, { method: 'POST', headers, body })
  const cookie = response.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
  const session = await fetch(`${service.base}/session`, { headers: { cookie } })
  expect(await session.json()).toEqual({ application: 'Ann', session: { isRemembered: false } })
  // Asking is not an error, and browsers log refusals.
  const nobody = await fetch(`${service.base}/session`)
  expect([nobody.status, await nobody.json()]).toEqual([200, { application: null, session: null }])
  const refused = await fetch(`${service.base}/session`, { headers: { authorization: 'wrong' } })
  expect(refused.status).toBe(401)
  expect(seen).toEqual(['ticket of Ann', 'ticket of Ann', null, 'wrong'])
})
