import { createServer, request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { canMakeCertificates, selfSigned } from './self-signed.js'
import { type Service, serviceOfTest, startService } from '../harness.js'
import { rawRequest } from './raw-request.js'

/** Existing clients of this interface, byte for byte as the contract's table describes them. */

let service: Service
beforeAll(async () => {
  service = await startService({
    http: { basePath: ['/v1', '/api', ''] },
    engine: { limits: { maxFileBytes: 100_000 } },
  })
})
afterAll(() => service.close())

const stems = 'service/stems-vocals-accompaniment'

async function exchange(
  lines: string[],
  body: string | Uint8Array = '',
): Promise<{ status: number; head: string; json: Record<string, never> }> {
  const head = Buffer.from([...lines, `Host: ${new URL(service.base).host}`, 'Connection: close', '', ''].join('\r\n'))
  const answer = await rawRequest(service.base, [Buffer.concat([head, Buffer.from(body)])])
  return { ...answer, json: JSON.parse(answer.body) }
}

describe.each(['/v1', '/api', ''])('a client with the base path "%s"', (base) => {
  const authorization = () => `Authorization: ${service.app.key}`

  async function ticket(): Promise<{ uploadUrl: string; downloadUrl: string }> {
    const { status, json } = await exchange([`GET ${base}/upload HTTP/1.1`, authorization()])
    expect(status).toBe(200)
    return json as unknown as { uploadUrl: string; downloadUrl: string }
  }

  async function create(inputUrl: string) {
    const body = JSON.stringify({ name: 'A song', workflow: stems, params: { inputUrl } })
    return exchange(
      [
        `POST ${base}/job HTTP/1.1`,
        authorization(),
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
      ],
      body,
    )
  }

  const put = (url: string, headers: string[], body: string) =>
    exchange([`PUT ${url.slice(service.server.origin.length)} HTTP/1.1`, ...headers], body)

  test('that treats everything but 200 as an error goes through the whole flow', async () => {
    const { uploadUrl, downloadUrl } = await ticket()
    expect((await put(uploadUrl, ['Content-Length: 4'], 'RIFF')).status).toBe(200)
    const created = await create(downloadUrl)
    expect([created.status, Object.keys(created.json)]).toEqual([200, ['id']])
    const id = created.json.id
    let polled: Awaited<ReturnType<typeof exchange>>
    do {
      polled = await exchange([`GET ${base}/job/${id}/status HTTP/1.1`, authorization()])
      expect(polled.status).toBe(200)
      expect(polled.json).toMatchObject({ id, status: expect.stringMatching(/^(QUEUED|STARTED|SUCCEEDED)$/) })
    } while (polled.json.status !== 'SUCCEEDED')
    const job = await exchange([`GET ${base}/job/${id} HTTP/1.1`, authorization()])
    expect(Object.keys(job.json.result!)).toEqual(['vocals', 'accompaniments'])
    const deleted = await exchange([`DELETE ${base}/job/${id} HTTP/1.1`, authorization()])
    expect([deleted.status, deleted.json]).toEqual([200, { id }])
  })

  test('that uploads chunked, without a length and a type', async () => {
    const { uploadUrl, downloadUrl } = await ticket()
    const sent = await put(uploadUrl, ['Transfer-Encoding: chunked'], '4\r\nRIFF\r\n6\r\n....WA\r\n0\r\n\r\n')
    expect(sent.status).toBe(200)
    expect(await (await fetch(downloadUrl)).text()).toBe('RIFF....WA')
  })

  test('that uploads a form with the field filedata', async () => {
    const { uploadUrl, downloadUrl } = await ticket()
    const boundary = '---------------------------735323031399963166993862150'
    const body =
      `--${boundary}\r\nContent-Disposition: form-data; name="filedata"; filename="a ` +
      `b.mp3"\r\nContent-Type: audio/mpeg\r\n\r\nID3 --${boundary.slice(2)} data\r\n--${boundary}--\r\n`
    const sent = await put(
      uploadUrl,
      [`Content-Type: multipart/form-data; boundary=${boundary}`, `Content-Length: ${body.length}`],
      body,
    )
    expect(sent.status).toBe(200)
    expect(await (await fetch(downloadUrl)).text()).toBe(`ID3 --${boundary.slice(2)} data`)
  })

  test('that says multipart/form-data over the plain file', async () => {
    const { uploadUrl, downloadUrl } = await ticket()
    expect((await put(uploadUrl, ['Content-Type: multipart/form-data', 'Content-Length: 8'], 'fLaC1234')).status).toBe(
      200,
    )
    expect(await (await fetch(downloadUrl)).text()).toBe('fLaC1234')
  })

  test('that ignores the answer to its upload gets the reason when it creates the job, in `message`', async () => {
    const { uploadUrl, downloadUrl } = await ticket()
    await put(uploadUrl, ['Content-Length: 100001'], 'x'.repeat(100_001))
    const created = await create(downloadUrl)
    expect(created.status).toBe(422)
    expect(created.json.message).toContain('100000 bytes')
  })

  test('that reads only `message` of an error always finds one', async () => {
    for (const [line, header] of [
      [`GET ${base}/job HTTP/1.1`, 'Authorization: wrong'],
      [`GET ${base}/job/none HTTP/1.1`, authorization()],
      [`GET ${base}/none HTTP/1.1`, authorization()],
      [`PUT ${base}/job HTTP/1.1`, authorization()],
      [`POST ${base}/job HTTP/1.1`, authorization()],
    ]) {
      const { status, json } = await exchange([line!, header!])
      expect(status).toBeGreaterThanOrEqual(400)
      expect(json.message).toMatch(/\S/)
    }
  })

  test('that lists with page, size and repeated filters', async () => {
    const jobs = await exchange([
      `GET ${base}/job?page=0&size=100&status=QUEUED&status=STARTED&workflow=${stems}&batchName=b HTTP/1.1`,
      authorization(),
    ])
    expect([jobs.status, jobs.json]).toEqual([200, []])
    const workflows = await exchange([`GET ${base}/workflow?page=0&size=100 HTTP/1.1`, authorization()])
    expect(Object.keys(workflows.json)).toEqual(['workflows'])
  })
})

test('a client that crashes if the connection ends while it sends gets its 413 after sending everything', async () => {
  const { uploadUrl } = (await (await service.api('/upload')).json()) as { uploadUrl: string }
  const answer = await new Promise<number>((resolve, reject) => {
    const upload = httpRequest(uploadUrl, { method: 'PUT' }, (response) => resolve(response.resume().statusCode ?? 0))
    upload.on('error', reject)
    for (let index = 0; index < 200; index++) upload.write(Buffer.alloc(64 * 1024))
    upload.end()
  })
  expect(answer).toBe(413)
})

test('a client that polls each second never gets 429, nor do 40 of them at once', async () => {
  const service = await serviceOfTest({ http: { rateLimits: {} } })
  const id = await service.created()
  const statuses = new Set<number>()
  for (let second = 0; second < 10; second++) {
    for (const answer of await Promise.all(Array.from({ length: 40 }, () => service.api(`/job/${id}/status`))))
      statuses.add(answer.status)
  }
  expect([...statuses]).toEqual([200])
})

test.skipIf(!canMakeCertificates())(
  'a client that takes only https results downloads them, named after the path, behind a TLS proxy (needs openssl)',
  async () => {
    const tls = selfSigned()
    const proxied = await serviceOfTest({ http: { trustProxy: true } })
    const { port } = new URL(proxied.base)
    const proxy = createServer(tls, (request, response) => {
      const headers = { ...request.headers, 'x-forwarded-proto': 'https', 'x-forwarded-host': request.headers.host }
      const upstream = httpRequest(
        { port, host: '127.0.0.1', method: request.method, path: request.url, headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
          answer.pipe(response)
        },
      )
      request.pipe(upstream)
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => (proxy.closeAllConnections(), void proxy.close()))
    const origin = `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const send = (url: string, method = 'GET', body?: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const headers = {
          authorization: proxied.app.key,
          ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
        }
        const sent = httpsRequest(
          url,
          { method, headers, ca: tls.cert, checkServerIdentity: () => undefined },
          (answer) => {
            text(answer).then(
              (body) => (answer.statusCode === 200 ? resolve(body) : reject(new Error(`${answer.statusCode} ${body}`))),
              reject,
            )
          },
        )
        sent.on('error', reject)
        sent.end(body)
      })
    const ticket = JSON.parse(await send(`${origin}/v1/upload`)) as { uploadUrl: string; downloadUrl: string }
    expect(ticket.uploadUrl.startsWith(`${origin}/v1/storage/`)).toBe(true)
    await send(ticket.uploadUrl, 'PUT', 'song')
    const { id } = JSON.parse(
      await send(
        `${origin}/v1/job`,
        'POST',
        JSON.stringify({ workflow: stems, params: { inputUrl: ticket.downloadUrl } }),
      ),
    ) as { id: string }
    let job: { status: string; result: Record<string, string> }
    do job = JSON.parse(await send(`${origin}/v1/job/${id}`)) as typeof job
    while (job.status !== 'SUCCEEDED')
    const saved: Record<string, string> = {}
    for (const [name, link] of Object.entries(job.result)) {
      if (!link.startsWith('https://')) continue
      const extension = new URL(link).pathname.split('.').pop()
      saved[`${name}.${extension}`] = await send(link)
    }
    expect(saved).toEqual({ 'vocals.wav': 'song', 'accompaniments.wav': 'song' })
  },
)
