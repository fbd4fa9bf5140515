import { crc32 } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type JobJson, pollJob, type Service, startService } from '../harness.js'
import { rawRequest } from '../mounts/raw-request.js'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const isoMilliseconds = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const stems = 'service/stems-vocals-accompaniment'
const song = Buffer.from('RIFF....WAVE a song of sixpence')

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

async function json<T = Record<string, unknown>>(response: Promise<Response>, status = 200): Promise<T> {
  const answer = await response
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toBe('application/json')
  return (await answer.json()) as T
}

async function createJob(body: Record<string, unknown>): Promise<string> {
  const answer = await json<{ id: string }>(service.submit(body))
  expect(Object.keys(answer)).toEqual(['id'])
  expect(answer.id).toMatch(uuid)
  return answer.id
}

describe('the flow of the specification', () => {
  test('upload, create, poll, read the results, delete', async () => {
    const ticket = await json<{ uploadUrl: string; downloadUrl: string }>(service.api('/upload'))
    expect(Object.keys(ticket).sort()).toEqual(['downloadUrl', 'uploadUrl'])

    const form = new FormData()
    form.set('filedata', new Blob([song], { type: 'audio/wav' }), 'song.wav')
    const put = await fetch(ticket.uploadUrl, { method: 'PUT', body: form })
    expect(put.status).toBe(200)
    expect(Buffer.from(await (await fetch(ticket.downloadUrl)).arrayBuffer())).toEqual(song)

    const id = await createJob({ name: 'My song', workflow: stems, params: { inputUrl: ticket.downloadUrl } })
    const job = await pollJob(service, id)
    expect(job).toMatchObject({
      id,
      name: 'My song',
      status: 'SUCCEEDED',
      workflow: { id: stems, name: 'Vocals and accompaniment', description: expect.stringContaining('Separates') },
      workflowParams: { inputUrl: ticket.downloadUrl },
      details: { model: { name: 'none' } },
      error: null,
      progress: 1,
    })
    for (const time of [job.createdAt, job.startedAt, job.completedAt, job.expiresAt])
      expect(time).toMatch(isoMilliseconds)
    expect(Object.keys(job.result ?? {}).sort()).toEqual(['accompaniments', 'vocals'])
    for (const [name, link] of Object.entries(job.result ?? {})) {
      expect(new URL(link).pathname).toMatch(new RegExp(`/${name}\\.wav$`))
      const file = await fetch(link)
      expect(file.headers.get('content-type')).toBe('audio/wav')
      expect(Buffer.from(await file.arrayBuffer())).toEqual(song)
    }

    expect(await json(service.api(`/job/${id}`, { method: 'DELETE' }))).toEqual({ id })
    expect((await service.api(`/job/${id}`)).status).toBe(404)
    for (const link of Object.values(job.result ?? {})) expect((await fetch(link)).status).toBe(404)
  })

  test('a job that waits or runs shows every field, null where it is not known yet', async () => {
    const id = await createJob({ workflow: 'service/held', params: { note: 'x' } })
    const job = await pollJob(service, id, (one) => one.status === 'STARTED' && one.progress > 0)
    expect(job).toMatchObject({
      name: null,
      result: null,
      details: null,
      error: null,
      completedAt: null,
      expiresAt: null,
      batchName: null,
      metadata: {},
    })
    expect(job.startedAt).toMatch(isoMilliseconds)
    expect(job.stage).toBe('hold')
    expect(await json(service.api(`/job/${id}/status`))).toMatchObject({ id, status: 'STARTED' })
    await json(service.api(`/job/${id}`, { method: 'DELETE' }))
    expect((await service.api(`/job/${id}/status`)).status).toBe(404)
  })

  test('a job whose input cannot be used ends FAILED with code, title, message, reason and retryable', async () => {
    const id = await createJob({ workflow: stems, params: { inputUrl: 'http://127.0.0.1:9/nothing.wav' } })
    const job = await pollJob(service, id)
    expect(job).toMatchObject({
      status: 'FAILED',
      result: null,
      details: null,
      error: { code: 'BAD_INPUT', reason: 'blocked_address', retryable: false },
    })
    expect(job.error?.message).not.toBe('')
  })

  test('the list is an array of jobs, newest first', async () => {
    const ids = [
      await createJob({ workflow: 'service/held', params: {} }),
      await createJob({ workflow: 'service/held', params: {} }),
    ]
    const jobs = await json<JobJson[]>(service.api('/job'))
    expect(Array.isArray(jobs)).toBe(true)
    const listed = jobs.map((job) => job.id).filter((id) => ids.includes(id))
    expect(listed.sort()).toEqual([...ids].sort())
    expect(jobs[0]).toHaveProperty('workflowParams')
    for (const id of ids) await service.api(`/job/${id}`, { method: 'DELETE' })
  })

  test('the application of the key', async () => {
    expect(await json(service.api('/application'))).toEqual({ id: service.app.id, name: 'Test application' })
    expect(service.app.id).toMatch(uuid)
  })

  test('the workflows are in an object, with id, name and description', async () => {
    const { workflows } = await json<{ workflows: { id: string }[] }>(service.api('/workflow?page=0&size=100'))
    expect(workflows.map((workflow) => workflow.id)).toContain(stems)
    expect(Object.keys(workflows[0]!)).toEqual(['id', 'name', 'description'])
  })
})

describe('authentication', () => {
  test('the raw key and "Bearer <key>" are accepted', async () => {
    expect((await service.api('/application')).status).toBe(200)
    expect((await service.api('/application', { key: `Bearer ${service.app.key}` })).status).toBe(200)
  })

  test('a wrong key, a mistyped one and a malformed one get the same 401, and none at all another one', async () => {
    const { key } = service.app
    const body = key.slice(0, 21) + 'A'.repeat(43)
    const forged = body + crc32(body).toString(16).padStart(8, '0')
    const mistyped = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')
    const bodies: unknown[] = []
    for (const authorization of [forged, mistyped, 'nonsense', `${key}x`, undefined, '', 'Bearer']) {
      const answer = await fetch(`${service.base}/application`, {
        headers: authorization === undefined ? {} : { authorization },
      })
      expect(answer.status).toBe(401)
      const { requestId, ...body } = (await answer.json()) as Record<string, unknown>
      expect(requestId).toBe(answer.headers.get('x-request-id'))
      bodies.push(body)
    }
    for (const [same, message] of [
      [bodies.slice(0, 4), /^The API key is not valid/],
      [bodies.slice(4), /^The request has no API key/],
    ] as const) {
      expect(new Set(same.map((body) => JSON.stringify(body))).size).toBe(1)
      expect(same[0]).toMatchObject({
        code: 'UNAUTHORIZED',
        status: 401,
        message: expect.stringMatching(message),
        title: expect.stringMatching(/.+/),
      })
    }
  })

  test("another application's jobs do not exist for it", async () => {
    const id = await createJob({ workflow: 'service/held', params: {} })
    const { key } = await service.addApplication('Stranger')
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/status'],
      ['DELETE', ''],
      ['POST', '/cancel'],
    ]) {
      const answer = await service.api(`/job/${id}${path}`, { method, key })
      expect(answer.status).toBe(404)
    }
    expect(await json(service.api('/job', { key }))).toEqual([])
    await json(service.api(`/job/${id}`, { method: 'DELETE' }))
  })
})

describe('errors', () => {
  test.each([
    ['an unknown path', 'GET', '/nothing', undefined, 404, 'NOT_FOUND'],
    ['an unknown job', 'GET', '/job/00000000-0000-4000-8000-000000000000', undefined, 404, 'NOT_FOUND'],
    ['a malformed id', 'GET', '/job/..%2f..', undefined, 404, 'NOT_FOUND'],
    ['a malformed id of a delete', 'DELETE', '/job/1', undefined, 404, 'NOT_FOUND'],
    ['a wrong method', 'PATCH', '/job', undefined, 405, 'METHOD_NOT_ALLOWED'],
    ['JSON that is none', 'POST', '/job', '{', 400, 'BAD_INPUT'],
    ['a body that is no object', 'POST', '/job', '[]', 400, 'BAD_INPUT'],
    ['a missing workflow', 'POST', '/job', '{"params":{}}', 400, 'BAD_INPUT'],
    ['an unknown workflow', 'POST', '/job', '{"workflow":"service/none","params":{}}', 422, 'UNKNOWN_WORKFLOW'],
    ['params that the workflow refuses', 'POST', '/job', `{"workflow":"${stems}","params":{}}`, 400, 'BAD_INPUT'],
    [
      'an empty name',
      'POST',
      '/job',
      `{"name":"","workflow":"${stems}","params":{"inputUrl":"https://x.test/a"}}`,
      400,
      'BAD_INPUT',
    ],
  ])('%s', async (_what, method, path, body, status, code) => {
    const answer = await service.api(path, { method, body })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toBe('application/json')
    const problem = (await answer.json()) as Record<string, unknown>
    expect(problem).toMatchObject({
      code,
      status,
      message: expect.stringMatching(/.+/),
      title: expect.stringMatching(/.+/),
      requestId: answer.headers.get('x-request-id'),
    })
  })

  test('a 405 names the methods that are possible', async () => {
    const answer = await service.api('/job', { method: 'PATCH' })
    expect(answer.headers.get('allow')).toBe('GET, HEAD, POST, OPTIONS')
  })

  test('an unknown workflow is answered with the known ones', async () => {
    const answer = await service.submit({ workflow: 'service/none' })
    const { message } = (await answer.json()) as { message: string }
    expect(message).toContain(stems)
    expect(message).toContain('service/held')
  })

  test('field problems carry the path of the field', async () => {
    const answer = await service.submit({ workflow: stems, params: { inputUrl: 7 } })
    const { errors } = (await answer.json()) as { errors: { path: string }[] }
    expect(errors.map((error) => error.path)).toEqual(['params.inputUrl'])
  })

  test('a body that is not JSON by its content type is refused with 415', async () => {
    const answer = await service.api('/job', { method: 'POST', body: '{}', headers: { 'content-type': 'text/plain' } })
    expect(answer.status).toBe(415)
  })

  test('a JSON body over the limit is refused with 413', async () => {
    const answer = await service.submit({ workflow: stems, params: { x: 'y'.repeat(300_000) } })
    expect(answer.status).toBe(413)
  })

  test.each(['x:99999', 'a b<>', 'evil/x?y', 'u:p@evil'])('the Host header %s is refused', async (host) => {
    const answer = await rawRequest(service.base, [
      `POST /v1/upload HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    ])
    expect([answer.status, JSON.parse(answer.body)]).toEqual([400, expect.objectContaining({ code: 'BAD_INPUT' })])
  })

  test('problem+json is sent to those who ask for it', async () => {
    const answer = await service.api('/nothing', { headers: { accept: 'application/problem+json' } })
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(await answer.json()).toMatchObject({
      type: 'urn:stemwork:problem:not-found',
      status: 404,
      detail: expect.any(String),
      message: expect.any(String),
    })
  })

  test('__proto__ and deep nesting do no harm', async () => {
    const polluted = `{"workflow":"service/held","params":{},"metadata":{},"__proto__":{"name":"polluted"}}`
    const id = (await json<{ id: string }>(service.api('/job', { method: 'POST', body: polluted }))).id
    expect((await json<JobJson>(service.api(`/job/${id}`))).name).toBeNull()
    expect(({} as Record<string, unknown>).name).toBeUndefined()
    await service.api(`/job/${id}`, { method: 'DELETE' })
    const deep = `{"workflow":"service/held","params":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`
    expect((await service.api('/job', { method: 'POST', body: deep })).status).toBe(400)
  })
})
