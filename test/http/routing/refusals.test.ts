import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../harness.js'

/** Messages for a client whose request is refused: what happened, what was expected, and what to do. */

let service: Service
beforeAll(async () => {
  service = await startService({ http: { manageKeys: true, operator: { key: 'an-operator-key-1234' } } })
})
afterAll(() => service.close())

interface Refusal {
  code: string
  title: string
  message: string
  errors?: { path: string; message: string }[]
}

async function refusal(answer: Promise<Response>, status = 400): Promise<Refusal> {
  const got = await answer
  expect(got.status).toBe(status)
  return (await got.json()) as Refusal
}

const post = (path: string, body: unknown) => service.api(path, { method: 'POST', body: JSON.stringify(body) })
const job = { workflow: 'service/held', params: {} }

describe('a field of a new job that is not known', () => {
  test.each([
    ['webhookUrl', 'webhook'],
    ['web_hook', 'webhook'],
    ['meta', 'metadata'],
    ['batchname', 'batchName'],
    ['param', 'params'],
    ['copyResults', 'copyResultsTo'],
  ])('%s is refused with the one that was probably meant', async (given, meant) => {
    expect(await refusal(post('/job', { ...job, [given]: 'x' }))).toMatchObject({
      code: 'BAD_INPUT',
      message: `The request is not valid. ${given}: is not known: the nearest name is ${meant}.`,
      errors: [{ path: given, message: `is not known: the nearest name is ${meant}` }],
    })
  })

  test('is refused with the known ones if none is similar, even in a batch', async () => {
    const { errors } = await refusal(post('/job', { ...job, colour: 'red' }))
    expect(errors).toEqual([
      { path: 'colour', message: expect.stringMatching(/^is not known: expected only name, workflow, params, /) },
    ])
    const batch = await refusal(post('/batch', { jobs: [{ ...job, webhookUrl: 'x' }], note: 1 }))
    expect(batch.errors?.map(({ path }) => path)).toEqual(['jobs.0.webhookUrl', 'note'])
  })

  test('an event of webhooks is refused with the one that was probably meant, or with the known ones', async () => {
    const { errors } = await refusal(
      post('/job', { ...job, webhook: { url: 'https://example.com', events: ['job.succeded', 'nonsense'] } }),
    )
    expect(errors?.map(({ path }) => path)).toEqual(['webhook.events.0', 'webhook.events.1'])
    expect(errors?.[0]?.message).toContain('job.succeeded')
    expect(errors?.[1]?.message).toMatch(/job\.succeeded.*job\.failed.*usage\.recorded/)
  })

  test('is refused likewise within a field, as is one of a batch', async () => {
    const url = 'https://example.com'
    const { errors } = await refusal(post('/job', { ...job, webhook: { url, event: ['job.succeeded'], secret: 'x' } }))
    expect(errors).toEqual([
      { path: 'webhook.event', message: 'is not known: the nearest name is events' },
      { path: 'webhook.secret', message: 'is not known: expected only url, events' },
    ])
    const batch = await refusal(
      post('/batch', {
        jobs: [
          { ...job, webhook: { uri: url } },
          { ...job, prority: 1 },
        ],
        webhook: { url, events: [] },
      }),
    )
    expect(batch.errors).toEqual(
      expect.arrayContaining([
        { path: 'jobs.0.webhook.uri', message: 'is not known: the nearest name is url' },
        { path: 'jobs.1.prority', message: 'is not known: the nearest name is priority' },
        { path: 'webhook.events', message: 'is not known: expected only url' },
      ]),
    )
  })

  test('is never one of the specification: its whole request is accepted', async () => {
    const { status } = await post('/job', { name: 'A song', ...job })
    expect(status).toBe(200)
  })
})

test.each(['notBefore', 'deadline'])('%s before 1970 is refused as a time', async (field) => {
  const body = { ...job, [field]: '1969-12-31T23:59:59Z' }
  expect((await refusal(post('/job', body))).message).toBe(
    `The request is not valid. ${field}: must not be before 1970-01-01T00:00:00Z.`,
  )
})

test.each([
  ['k'.repeat(41), 'at most 40 characters'],
  ['', 'at least 1 character'],
])('a name of metadata is refused with what it may have: "%s"', async (name, rule) => {
  const { errors } = await refusal(post('/job', { ...job, metadata: { [name]: 'x' } }))
  expect(errors).toEqual([
    { path: `metadata.${name}`, message: `has a name that is not allowed: it must have ${rule}` },
  ])
})

test.each([
  ['ftp://a/b', 'must be a complete URL that begins with http:// or https://, not "ftp://a/b"'],
  ['example.org', 'must be a complete URL that begins with http:// or https://, not "example.org"'],
  [`https://example.org/${'x'.repeat(8192)}`, 'must have at most 8192 characters'],
  [1, 'must be a text, not a whole number'],
  [undefined, 'is missing: expected a text'],
])('an address to send to is refused with what it must be: case %#', async (url, message) => {
  const { errors } = await refusal(post('/job', { ...job, webhook: { url } }))
  expect(errors).toEqual([{ path: 'webhook.url', message }])
  if (url === undefined) return
  const copied = await refusal(post('/job', { ...job, copyResultsTo: { audio: url } }))
  expect(copied.errors).toEqual([{ path: 'copyResultsTo.audio', message }])
})

describe('a name in a query that is not known', () => {
  test.each([
    ['/job?pages=1', 'is not known: the nearest name is page'],
    ['/job?statuses=FAILED', 'is not known: the nearest name is status'],
    ['/job?limit=many', /^is not known: expected only page, size, /],
    ['/workflow?limit=2', 'is not known: expected only page, size'],
    ['/batch?name=b&names=b', 'is not known: the nearest name is name'],
    ['/usage?groupby=day', 'is not known: the nearest name is groupBy'],
    ['/archive?jobs=1', 'is not known: the nearest name is job'],
  ])('%s is refused with the one that was probably meant, or with the known ones', async (path, message) => {
    const { errors } = await refusal(service.api(path))
    const expected = typeof message === 'string' ? message : expect.stringMatching(message)
    expect(errors).toContainEqual({ path: /(\w+)=[^&]*$/.exec(path)?.[1], message: expected })
  })
})

test.each([
  ['size=-1', 'must be a whole number from 1 to 100, not "-1"'],
  ['size=1.5', 'must be a whole number from 1 to 100, not "1.5"'],
  ['size=0', 'must be a whole number from 1 to 100, not 0'],
  ['page=1000000000', 'must be a whole number from 0 to 999999999, not "1000000000"'],
  ['page=1&page=2', 'must be a whole number from 0 to 999999999'],
])('%s is refused with the numbers that are allowed', async (query, message) => {
  for (const path of ['/job', '/workflow'])
    expect((await refusal(service.api(`${path}?${query}`))).errors).toEqual([{ path: query.slice(0, 4), message }])
})

test.each(['GET', 'HEAD', 'DELETE'])('%s of what takes only POST is refused with 405, not as a job', async (method) => {
  for (const path of ['/job/cancel', '/job/retry', '/job/delete']) {
    const answer = await service.api(path, { method })
    expect([answer.status, answer.headers.get('allow')], path).toEqual([405, 'POST, OPTIONS'])
  }
})

describe('a key', () => {
  const ask = (headers: Record<string, string>) => refusal(fetch(`${service.base}/job`, { headers }), 401)

  test('that is missing, wrong, or in another header has its own message', async () => {
    expect((await ask({})).message).toBe(
      'The request has no API key. Send one as the raw value of the Authorization header.',
    )
    expect((await ask({ authorization: '' })).message).toMatch(/^The request has no API key\./)
    expect((await ask({ 'X-API-Key': service.app.key })).message).toBe(
      'The API key came in the header x-api-key, which is not read. Send it as the raw value of the Authorization ' +
        'header.',
    )
    for (const wrong of ['wrong', `${service.app.key}x`, 'Bearer wrong', `${service.app.key.slice(0, -1)}`])
      expect((await ask({ authorization: wrong, 'x-api-key': 'another' })).message).toMatch(
        /^The API key is not valid: it is mistyped, revoked, expired, or for another service\./,
      )
  })
})

/** Phrases from the validator's messages. */
const validatorsWords =
  /Invalid (input|option|string|number|URL|UUID|ISO|key|element|value)|Too (small|big)|received|Unrecognized|expected \w+ to/

describe("the validator's own words", () => {
  const wrong = [null, 1, [], {}, { [''.padEnd(50, 'x')]: 1 }, { params: 1, workflow: 1, name: 1, webhook: 1 }]
  const wrongJobs = [
    { workflow: '', params: [] },
    { ...job, name: '' },
    { ...job, name: 'x'.repeat(256) },
    { ...job, metadata: { ['k'.repeat(41)]: 'x', a: 1 } },
    { ...job, copyResultsTo: { a: 'ftp://x' } },
    { ...job, webhook: { url: 'x', events: 'all' } },
    { ...job, priority: 3 },
    { ...job, notBefore: 'soon', deadline: 5 },
    { workflow: 'service/held', params: { note: 5 } },
    { workflow: 'service/stems-vocals-accompaniment', params: { inputUrl: 'x' } },
    { workflow: 'service/stems-vocals-accompaniment', params: {} },
  ]

  test('reach no client that sends a wrong body', async () => {
    for (const path of [
      '/job',
      '/batch',
      '/job/cancel',
      '/job/delete',
      '/application/key',
      '/application/webhook-secret',
    ])
      for (const body of [...wrong, ...wrongJobs, { jobs: wrongJobs }, { limit: 0, status: ['DONE'], after: 'x' }]) {
        const answer = await post(path, body)
        if (answer.ok) continue
        expect(await answer.text(), `${path} ${JSON.stringify(body)}`).not.toMatch(validatorsWords)
      }
  })

  test('reach no client that sends a wrong query', async () => {
    for (const query of ['page=x', 'size=0', 'size=101', 'status=DONE', 'createdAfter=x', 'after=x', 'batchName='])
      expect(await (await service.api(`/job?${query}`)).text(), query).not.toMatch(validatorsWords)
    const { message } = await refusal(service.api('/job?size=101&status=DONE'))
    expect(message).toContain('size: must be a whole number from 1 to 100, not 101')
    expect(message).toContain('status.0: must be one of QUEUED, STARTED, SUCCEEDED, FAILED')
  })
})
