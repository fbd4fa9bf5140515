import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { connect as connectHttp2, constants, createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import type { Handler } from '../../../src/http/index.js'
import { listener, serve } from '../../../src/http/mounts/node.js'
import { separated, type Service, serviceOfTest, type ServiceSettings } from '../harness.js'
import { chunkedPut, rawRequest } from './raw-request.js'

/** Timeout for a busy machine: the default is one second. */
const patient = { timeout: 15_000 }

async function start(settings: ServiceSettings = {}): Promise<{ service: Service; directory: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'stemwork-http-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return { service: await serviceOfTest({ blobs: fsBlobs({ directory }), ...settings }), directory }
}

/** Sends a head and then `piece` every `everyMs`, at most `count` times, until the server answers. */
function trickle(url: string, head: string[], piece: string, everyMs: number, count = Infinity): Promise<string> {
  const { hostname, port, host, pathname, search } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(Number(port), hostname)
    let received = ''
    let sent = 0
    // Writes before the connection are kept in this order, so that no piece precedes the head.
    socket.write([`${head[0]} ${pathname}${search} HTTP/1.1`, `Host: ${host}`, ...head.slice(1), '', ''].join('\r\n'))
    const timer = setInterval(() => socket.writable && sent++ < count && socket.write(piece), everyMs)
    socket.on('data', (chunk) => (received += chunk.toString()))
    socket.on('error', reject)
    socket.on('close', () => {
      clearInterval(timer)
      resolve(received)
    })
  })
}

describe('a slow client', () => {
  test('that stops sending its upload is answered 408, and leaves no file', async () => {
    const { service, directory } = await start({ http: { limits: { idleMs: 200 } } })
    const { uploadUrl } = (await (await service.api('/upload')).json()) as { uploadUrl: string }
    expect(await trickle(uploadUrl, ['PUT', 'Content-Length: 1000'], '', 50)).toMatch(/^HTTP\/1\.1 408 /)
    expect(filesIn(directory)).toEqual([])
  })

  test('may send some requests before it reads the answers; with many, its connection is closed', async () => {
    const { service } = await start({ worker: false })
    const { pathname } = new URL(`${service.base}/application`)
    const send = async (count: number) => {
      const request = (more = '') =>
        `GET ${pathname} HTTP/1.1\r\nHost: x\r\nAuthorization: ${service.app.key}\r\n${more}\r\n`
      const { head, body } = await rawRequest(service.base, [
        request().repeat(count - 1) + request('Connection: close\r\n'),
      ])
      return `${head}${body}`.match(/http\/1\.1 200/gi)?.length ?? 0
    }
    expect(await send(5)).toBe(5)
    expect(await send(6)).toBeLessThan(5)
    expect(await send(1000)).toBeLessThan(5)
    expect((await service.api('/application')).status).toBe(200)
  })

  test.each([
    ['', (handler: Handler) => handler],
    [
      ', also behind a handler of the host',
      (handler: Handler): Handler =>
        (request, context) =>
          handler(request, context),
    ],
  ])('may send its body in small chunks, but not one that is mostly their framing%s', async (_where, wrapped) => {
    const { service } = await start()
    const server = await serve(wrapped(service.handler), { port: 0 })
    onTestFinished(() => server.close({ timeoutMs: 100 }))
    const send = async (bytes: number, count: number) => {
      const ticket = (await (await service.api('/upload')).json()) as { uploadUrl: string }
      const uploadUrl = ticket.uploadUrl.replace(service.server.origin, server.origin)
      const chunk = 'x'.repeat(bytes)
      const [head, end] = chunkedPut(uploadUrl, [])
      const chunks = `${bytes.toString(16)}\r\n${chunk}\r\n`.repeat(count)
      const { status, body } = await rawRequest(uploadUrl, [head!, chunks, end!])
      return status === 200 ? (JSON.parse(body) as { bytes: number }).bytes : status
    }
    expect(await send(1, 10_000)).toBe(10_000)
    expect(await send(100, 20_000)).toBe(2_000_000)
    expect(await send(1, 100_000)).toBe(400)
  })

  test('takes only the time of a small chunk in each pass of the event loop, whatever the host reads', async () => {
    const { service } = await start({ worker: false })
    const job = JSON.stringify({ workflow: 'service/held', params: {} }).padEnd(1000)
    const body = ReadableStream.from(Array.from(job, (character) => Buffer.from(character)))
    const headers = { authorization: service.app.key, 'content-type': 'application/json' }
    let passes = 0
    const count = () => {
      passes++
      pass = setImmediate(count)
    }
    let pass = setImmediate(count)
    const sent = new Request(`${service.base}/job`, { method: 'POST', headers, body, duplex: 'half' })
    const { status } = await service.handler(sent)
    clearImmediate(pass)
    expect(status).toBe(200)
    expect(passes).toBeGreaterThan(900)
  })

  test.each([
    ['nothing', '/nothing', ''],
    ['an open route', '/healthz', ''],
    ['a job, with a wrong key', '/job', 'wrong'],
    ['a file, with a forged link', '/storage/uploads/a/b?signature=x', ''],
  ])('without a key has its turn, too, when it requests %s', async (_what, path, authorization) => {
    const { service } = await start({ worker: false })
    let answered = 0
    const ask = (where: string, key: string) =>
      service.handler(new Request(service.base + where, { headers: { authorization: key } }))
    const asked = Array.from({ length: 2000 }, async () => {
      await ask(path, authorization)
      answered++
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(answered).toBeLessThan(2000)
    expect((await ask('/application', service.app.key)).status).toBe(200)
    expect(answered).toBeLessThan(2000)
    await Promise.all(asked)
  })

  test('may begin 100 requests on an HTTP/2 connection; it is told the limit, and may repeat the others', async () => {
    const { service } = await start({ worker: false })
    const server = createHttp2Server(listener(service.handler) as unknown as Parameters<typeof createHttp2Server>[1])
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    onTestFinished(() => (client.destroy(), void server.close()))
    const ask = () =>
      new Promise((resolve) => {
        const asked = client.request({ ':path': '/v1/application', authorization: service.app.key })
        asked.on('response', ({ ':status': status }) => resolve(status))
        asked.on('error', () => resolve(asked.rstCode)).resume()
      })
    await once(client, 'remoteSettings')
    const told = once(client, 'remoteSettings')
    const answers = await Promise.all(Array.from({ length: 150 }, ask))
    expect(answers.filter((answer) => answer === 200)).toHaveLength(100)
    expect(answers.filter((answer) => answer === constants.NGHTTP2_REFUSED_STREAM)).toHaveLength(50)
    expect(await told).toMatchObject([{ maxConcurrentStreams: 100 }])
    expect(await ask()).toBe(200)
  })

  test('may send few large JSON bodies at once; other applications send theirs, and keyless clients none', async () => {
    const { service } = await start({ worker: false, http: { console: true, rateLimits: { create: false } } })
    const { hostname, port, pathname } = new URL(`${service.base}/job`)
    const begin = (key: string) => {
      const socket = connect(Number(port), hostname)
      onTestFinished(() => void socket.destroy())
      let received = ''
      socket.on('data', (chunk) => (received += chunk.toString())).on('error', () => {})
      const head = [`POST ${pathname} HTTP/1.1`, 'Host: x', `Authorization: ${key}`, 'Content-Type: application/json']
      socket.write([...head, 'Content-Length: 20000', '', '{'].join('\r\n'))
      return () => received.split(' ', 2)[1]
    }
    const create = async (key: string, filler: number) =>
      (await service.submit({ filler: 'x'.repeat(filler) }, { key })).status
    const apps = [service.app]
    for (let n = 0; n < 23; n++) apps.push(await service.addApplication(`Other ${n}`))
    const newcomer = apps.pop()!
    // An eighth of all slots is reserved for applications without one.
    const begun = apps.flatMap(({ key }, n) => Array.from({ length: n < 7 ? 16 : 1 }, () => begin(key)))
    // 429: its slots are taken; 400: refused because of its content.
    await expect.poll(() => create(service.app.key, 20_000), patient).toBe(429)
    expect(await create(service.app.key, 10_000)).toBe(400)
    // All slots are taken, so the newcomer gets a slot of an application that has the most.
    expect(await create(newcomer.key, 20_000)).toBe(400)
    const answers = () => begun.map((answer) => answer()).filter((answer) => answer !== undefined)
    await expect.poll(answers, patient).toEqual(['429'])

    const signIn = (key: string) =>
      fetch(`${service.base}/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ key }),
      })
    expect((await signIn('x'.repeat(20_000))).status).toBe(413)
    expect((await signIn('x'.repeat(2000))).status).toBe(400)
  })

  test('that trickles its upload is given up even though it never stops', async () => {
    const { service, directory } = await start({ http: { limits: { idleMs: 300, minBytesPerSecond: 1000 } } })
    const { uploadUrl } = (await (await service.api('/upload')).json()) as { uploadUrl: string }
    expect(await trickle(uploadUrl, ['PUT', 'Content-Length: 100000'], 'xx', 20)).toMatch(/^HTTP\/1\.1 408 /)
    expect(filesIn(directory)).toEqual([])
  })

  test('that trickles JSON is given up', async () => {
    const { service } = await start({ http: { limits: { idleMs: 300 } } })
    const head = ['POST', `Authorization: ${service.app.key}`, 'Content-Type: application/json', 'Content-Length: 1000']
    expect(await trickle(`${service.base}/job`, head, ' ', 20)).toMatch(/^HTTP\/1\.1 408 /)
  })

  test('that sends slowly but steadily is accepted', async () => {
    const { service } = await start({ http: { limits: { idleMs: 1000, minBytesPerSecond: 100 } } })
    const { uploadUrl } = (await (await service.api('/upload')).json()) as { uploadUrl: string }
    // Longer in total than a pause may be.
    const answer = await trickle(uploadUrl, ['PUT', 'Content-Length: 800', 'Connection: close'], 'x'.repeat(20), 40, 40)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  })

  test.skipIf(!existsSync('/proc/self/fd'))(
    'that stops reading its download is cut off and its file closed (needs /proc)',
    async () => {
      const { service, directory } = await start({ http: { limits: { idleMs: 200 } } })
      const link = await resultOf(service, 20_000_000)
      const { hostname, port, host, pathname, search } = new URL(link)
      const socket = connect(Number(port), hostname)
      const closed = new Promise((resolve) => socket.on('close', resolve))
      socket.on('error', () => {})
      socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      await new Promise((resolve) => socket.once('readable', resolve))
      expect(openFiles(directory)).toBeGreaterThan(0)
      await expect.poll(() => openFiles(directory), patient).toBe(0)
      socket.resume()
      await closed
    },
  )

  test.skipIf(!existsSync('/proc/self/fd'))(
    'that stops reading over HTTP/2 is cut off with an error, and holds no file (needs /proc)',
    async () => {
      const { service, directory } = await start({ http: { limits: { idleMs: 200 } } })
      const link = await resultOf(service, 20_000_000)
      const server = createHttp2Server(listener(service.handler) as unknown as Parameters<typeof createHttp2Server>[1])
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      onTestFinished(() => {
        client.destroy()
        server.close()
      })
      const { pathname, search, host } = new URL(link)
      const stream = client.request({ ':path': pathname + search, ':authority': host })
      const failed = once(stream, 'error')
      await once(stream, 'response')
      stream.pause()
      expect(openFiles(directory)).toBeGreaterThan(0)
      await expect.poll(() => openFiles(directory), patient).toBe(0)
      stream.resume()
      expect((await failed)[0]).toMatchObject({ code: 'ERR_HTTP2_STREAM_ERROR' })
    },
  )
})

describe('a client that goes away', () => {
  test.skipIf(!existsSync('/proc/self/fd'))(
    'in the middle of its download leaves no descriptor, thirty times over (needs /proc)',
    async () => {
      const { service, directory } = await start()
      const link = await resultOf(service, 5_000_000)
      for (let round = 0; round < 30; round++) {
        await new Promise<void>((resolve) => {
          const get = httpRequest(link, (answer) => {
            answer.once('data', () => {
              get.destroy()
              resolve()
            })
          })
          get.on('error', () => {})
          get.end()
        })
      }
      await expect.poll(() => openFiles(directory), patient).toBe(0)
    },
  )

  test('in the middle of its upload leaves no file, thirty times over', async () => {
    const { service, directory } = await start()
    const { uploadUrl, downloadUrl } = (await (await service.api('/upload')).json()) as {
      uploadUrl: string
      downloadUrl: string
    }
    for (let round = 0; round < 30; round++) {
      await new Promise<void>((resolve) => {
        const put = httpRequest(uploadUrl, { method: 'PUT' })
        put.on('error', () => resolve())
        put.on('close', () => resolve())
        put.write(Buffer.alloc(300_000), () => put.destroy())
      })
    }
    await expect.poll(() => filesIn(directory), patient).toEqual([])
    // Until the server notices that the last client is gone, its ticket is in use.
    const send = async () => (await fetch(uploadUrl, { method: 'PUT', body: 'whole' })).status
    await expect.poll(send, patient).toBe(200)
    expect(await (await fetch(downloadUrl)).text()).toBe('whole')
  })
})

test('500 clients that poll at once are all answered, while uploads go on', async () => {
  const { service } = await start()
  const id = await service.created()
  const uploads = Promise.all(Array.from({ length: 5 }, (_, index) => service.uploaded(Buffer.alloc(2_000_000, index))))
  const polls = await Promise.all(
    Array.from({ length: 500 }, async () => (await service.api(`/job/${id}/status`)).status),
  )
  expect(new Set(polls)).toEqual(new Set([200]))
  expect(await uploads).toHaveLength(5)
})

async function resultOf(service: Service, bytes: number): Promise<string> {
  return (await separated(service, Buffer.alloc(bytes, 'sound'))).result?.vocals ?? ''
}

/** Names of the files in the blob folder, except the deployment's marker. */
function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'deployment')
    .map((entry) => entry.name)
}

function openFiles(directory: string): number {
  let count = 0
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      if (readlinkSync(`/proc/self/fd/${fd}`).startsWith(directory)) count++
    } catch {
      // The file descriptor of this listing itself.
    }
  }
  return count
}

describe('an unexpected body', () => {
  /** Sends continuously, as fast as the server reads, until it closes. */
  function flood(url: string, head: string[]): Promise<{ answer: string; sent: number }> {
    const { hostname, port, host, pathname, search } = new URL(url)
    const block = Buffer.alloc(64 * 1024)
    const chunk = Buffer.concat([Buffer.from(`${block.length.toString(16)}\r\n`), block, Buffer.from('\r\n')])
    return new Promise((resolve) => {
      const socket = connect(Number(port), hostname)
      let answer = ''
      let sent = 0
      const more = () => {
        while (socket.writable && sent < 400 * block.length) {
          sent += block.length
          if (!socket.write(chunk)) return
        }
      }
      socket.on('drain', more)
      socket.on('data', (data) => (answer += data.toString()))
      socket.on('error', () => {})
      socket.on('close', () => resolve({ answer, sent }))
      const lines = [`${head[0]} ${pathname}${search} HTTP/1.1`, `Host: ${host}`, 'Transfer-Encoding: chunked']
      socket.write([...lines, ...head.slice(1), '', ''].join('\r\n'), more)
    })
  }

  test.each([
    ['with a wrong key', '/job', ['POST', 'Authorization: wrong', 'Content-Type: application/json']],
    ['with a forged link', '/storage/uploads/a/b?signature=x', ['PUT']],
    ['at a path that is none', '/none', ['POST']],
    ['with a method that the path has not', '/application', ['PUT']],
    ['with GET', '/healthz', ['GET']],
  ])('is read up to a bound, %s, and then the connection is closed', async (_what, path, head) => {
    const { service } = await start()
    const { answer, sent } = await flood(service.base + path, head)
    // Bytes in the buffers of both sides count as sent; without the limit, all 25 MiB are read.
    expect(sent).toBeLessThan(15 * 1024 ** 2)
    // A client that keeps sending may be cut off before it has read the answer.
    expect(answer).toMatch(/^$|connection: close/i)
  })

  test('a small one does not cost the connection', async () => {
    const { service } = await start()
    const path = new URL(service.base).pathname
    const lines = [`Host: x`, 'Authorization: wrong', 'Content-Length: 2', '', '{}']
    const request = [`DELETE ${path}/job/x HTTP/1.1`, ...lines].join('\r\n')
    const last = [`GET ${path}/healthz HTTP/1.1`, 'Host: x', 'Connection: close', '', ''].join('\r\n')
    const { head, body } = await rawRequest(service.base, [request, last])
    expect(head).toContain('401')
    expect(body).toContain('HTTP/1.1 200 OK')
  })
})
