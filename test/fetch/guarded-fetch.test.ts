import { randomBytes } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { AddressPolicy } from '../../src/core/engine/fetch/address-guard.js'
import type { Dial } from '../../src/core/engine/fetch/dial.js'
import {
  guardedFetch,
  type GuardedFetchOptions,
  type GuardedResponse,
} from '../../src/core/engine/fetch/guarded-fetch.js'
import { loopback, rawLoopback, rejection } from './loopback-server.js'

const get = (url: string, policy: AddressPolicy, options: Partial<GuardedFetchOptions> = {}) =>
  guardedFetch(url, { maxBytes: 1_000_000, policy, ...options })

async function bytesOf(response: GuardedResponse): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of response.body) pieces.push(piece)
  return Buffer.concat(pieces)
}

const chunkHead = Buffer.from('1\r\n')
const lineEnd = Buffer.from('\r\n')
const textOf = async (response: GuardedResponse) => (await bytesOf(response)).toString()

describe('a request', () => {
  it('asks for the path and query, unencoded content, and sends no cookie, credential or referrer', async () => {
    const server = await loopback((_, response) => response.setHeader('set-cookie', 'a=1').end('hello'))
    const response = await get(`${server.url}a%20b/c.wav?x=1&y=%2F#fragment`, server.policy)
    expect(await textOf(response)).toBe('hello')
    expect(server.requests[0]!.url).toBe('/a%20b/c.wav?x=1&y=%2F')
    expect(server.requests[0]!.headers).toEqual({
      host: `127.0.0.1:${server.port}`,
      'user-agent': 'stemwork',
      accept: '*/*',
      'accept-encoding': 'identity',
      connection: 'close',
    })
  })

  it('shows any status, the headers and the final address to its caller', async () => {
    const server = await loopback((_, response) =>
      response.writeHead(418, { 'x-kind': 'teapot' }).end('short and stout'),
    )
    const response = await get(server.url, server.policy)
    expect(response).toMatchObject({ status: 418, url: server.url, headers: { 'x-kind': 'teapot' } })
    expect(await textOf(response)).toBe('short and stout')
  })

  it('sends a buffer with its length, and a file stream with the length it is given', async () => {
    const bodies: string[] = []
    const server = await loopback(async (request, response) => {
      let body = ''
      for await (const piece of request) body += piece
      bodies.push(body)
      response.end()
    })
    await textOf(
      await get(server.url, server.policy, {
        method: 'POST',
        body: Buffer.from('{"a":1}'),
        headers: { 'content-type': 'application/json' },
      }),
    )
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-fetch-'))
    try {
      await writeFile(join(folder, 'file'), 'x'.repeat(300_000))
      await textOf(
        await get(server.url, server.policy, {
          method: 'PUT',
          body: createReadStream(join(folder, 'file')),
          headers: { 'content-length': '300000' },
        }),
      )
    } finally {
      await rm(folder, { recursive: true })
    }
    expect(bodies.map(({ length }) => length)).toEqual([7, 300_000])
    expect(server.requests.map(({ headers }) => headers['content-length'])).toEqual(['7', '300000'])
    expect(server.requests[1]!.headers['transfer-encoding']).toBeUndefined()
  })

  it('resolves a name once and dials what came out, not what the system would say', async () => {
    const server = await loopback((_, response) => response.end('found'))
    const asked: string[] = []
    const resolver = async (host: string) => (asked.push(host), [{ address: '127.0.0.1', family: 4 }])
    const response = await get(`http://no-such-name.invalid:${server.port}/`, {
      allow: ['no-such-name.invalid'],
      resolver,
    })
    expect(await textOf(response)).toBe('found')
    expect(asked).toEqual(['no-such-name.invalid'])
    expect(server.requests[0]!.headers.host).toBe(`no-such-name.invalid:${server.port}`)
  })

  it('tries the next vetted address when one does not answer', async () => {
    const server = await loopback((_, response) => response.end('second'))
    const resolver = async () => ['127.0.0.2', '127.0.0.1'].map((address) => ({ address, family: 4 }))
    expect(await textOf(await get(`http://nas.test:${server.port}/`, { allow: ['nas.test'], resolver }))).toBe('second')
  })
})

describe('redirects', () => {
  const redirecting = (location: string | ((url: string) => string), status = 302) =>
    loopback((request, response) => {
      const to = typeof location === 'string' ? location : location(request.url ?? '')
      if (to === '') response.end('arrived')
      else response.writeHead(status, { location: to }).end('moved')
    })

  it.each([301, 302, 303, 307, 308])('with status %d are followed, relative ones too, up to three', async (status) => {
    const server = await redirecting((url) => (url === '/3' ? '' : `/${Number(url.slice(1)) + 1}`), status)
    const response = await get(`${server.url}0`, server.policy)
    expect(await textOf(response)).toBe('arrived')
    expect(response.url).toBe(`${server.url}3`)
  })

  it('beyond three, or in a circle, fail', async () => {
    const server = await redirecting('/again')
    expect(await rejection(get(server.url, server.policy))).toMatchObject({
      reason: 'download_failed',
      retryable: false,
    })
    expect(server.requests).toHaveLength(4)
  })

  it.each([
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[::1]/',
    'http://[::ffff:10.0.0.1]/',
    'http://2130706433/',
    '//10.0.0.1/',
    'http://127.0.0.1:1/',
    'http://localhost:22/',
    'file:///etc/passwd',
    'ftp://example.com/',
    'data:text/plain,hello',
    'http://user:password@93.184.216.34/',
    'http://93.184.216.34:22/',
    'http://[',
    'http://1.2.3.4.5/',
  ])('to %s go through the same gate', async (location) => {
    const server = await redirecting(location)
    expect(await rejection(get(server.url, server.policy))).toMatchObject({
      code: 'BAD_INPUT',
      reason: 'blocked_address',
    })
  })

  it('to a name that leads inside fail', async () => {
    const server = await redirecting('http://inside.example/')
    const resolver = async () => [{ address: '10.0.0.1', family: 4 }]
    expect(await rejection(get(server.url, { ...server.policy, resolver }))).toMatchObject({
      reason: 'download_failed',
    })
  })

  it('are the answer itself for methods other than GET and HEAD, and where none are wanted', async () => {
    const server = await redirecting('http://10.0.0.1/')
    const posted = await get(server.url, server.policy, { method: 'POST', body: Buffer.from('x') })
    const single = await get(server.url, server.policy, { maxRedirects: 0 })
    expect([posted.status, single.status]).toEqual([302, 302])
    posted.cancel()
    single.cancel()
  })

  it('from https to http are refused', async () => {
    const server = await redirecting('/')
    const location = `http://127.0.0.1:${server.port}/`
    const secure = await redirecting(location)
    const dial: Dial = async ({ port }) => connect(port, '127.0.0.1')
    const error = await rejection(get(secure.url.replace('http:', 'https:'), { allow: ['127.0.0.1'] }, { dial }))
    expect(error).toMatchObject({
      reason: 'blocked_address',
      cause: { message: expect.stringContaining('https to http') },
    })
    expect(server.requests).toEqual([])
  })

  it("do not carry the caller's headers to another origin", async () => {
    const other = await loopback((_, response) => response.end('other'))
    const first = await redirecting((url) => (url === '/' ? '/same' : other.url))
    const policy = { allow: ['127.0.0.1'] }
    await textOf(await get(first.url, policy, { headers: { 'x-secret': 'yes' } }))
    expect([...first.requests, ...other.requests].map(({ headers }) => headers['x-secret'])).toEqual([
      'yes',
      'yes',
      undefined,
    ])
  })
})

describe('the size limit', () => {
  it('is met exactly', async () => {
    const server = await loopback((_, response) => response.end('x'.repeat(1000)))
    expect(await bytesOf(await get(server.url, server.policy, { maxBytes: 1000 }))).toHaveLength(1000)
  })

  it('refuses a body that is announced as larger without reading it', async () => {
    const server = await loopback((_, response) => response.writeHead(200, { 'content-length': '1001' }).write('x'))
    expect(await rejection(get(server.url, server.policy, { maxBytes: 1000 }))).toMatchObject({
      code: 'BAD_INPUT',
      reason: 'too_large',
      retryable: false,
    })
  })

  it('ends an endless body soon after it is passed', async () => {
    let closed: Promise<unknown> = Promise.resolve()
    let sent = 0
    const server = await loopback((_, response) => {
      closed = new Promise((resolve) => response.on('close', resolve))
      const pour = () => {
        while (!response.destroyed && response.write('x'.repeat(10_000))) sent += 10_000
        response.once('drain', pour)
      }
      pour()
    })
    const response = await get(server.url, server.policy, { maxBytes: 100_000 })
    let read = 0
    const error = await rejection(
      (async () => {
        for await (const piece of response.body) read += piece.length
      })(),
    )
    expect(error).toMatchObject({ reason: 'too_large' })
    expect(read).toBeLessThanOrEqual(100_000)
    await closed
    expect(sent).toBeLessThan(20_000_000)
  })

  it('counts what comes out of gzip, so a bomb is cut off', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000))
    expect(bomb.length).toBeLessThan(100_000)
    const server = await loopback((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    const response = await get(server.url, server.policy, { maxBytes: 100_000 })
    expect(await rejection(bytesOf(response))).toMatchObject({ reason: 'too_large' })
  })
})

describe('an encoded answer', () => {
  it.each(['gzip', 'x-gzip', 'GZIP'])('in %s is decoded', async (encoding) => {
    const server = await loopback((_, response) =>
      response.writeHead(200, { 'content-encoding': encoding }).end(gzipSync('hello')),
    )
    expect(await textOf(await get(server.url, server.policy))).toBe('hello')
  })

  it.each(['br', 'deflate', 'gzip, gzip', 'zstd', 'nonsense'])('in %s is refused', async (encoding) => {
    const server = await loopback((_, response) => response.writeHead(200, { 'content-encoding': encoding }).end('x'))
    expect(await rejection(get(server.url, server.policy))).toMatchObject({
      reason: 'download_failed',
      retryable: false,
    })
  })

  it.each([
    ['is no gzip at all', () => Buffer.from('not gzip')],
    ['is cut off', () => gzipSync(Buffer.alloc(5000, 'x')).subarray(0, 20)],
  ])('that %s fails', async (_, content) => {
    const server = await loopback((_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(content()),
    )
    expect(await rejection(bytesOf(await get(server.url, server.policy)))).toMatchObject({ reason: 'download_failed' })
  })
})

describe('a server that misbehaves', () => {
  it.each([
    ['hangs up at once', (socket: { destroy(): void }) => void socket.destroy(), true],
    ['speaks no HTTP', (socket: { end(text: string): void }) => void socket.end('220 smtp.example ESMTP\r\n'), false],
  ])('and %s fails, retryable: %#', async (_, talk, retryable) => {
    const server = await rawLoopback(talk)
    expect(await rejection(get(server.url, server.policy))).toMatchObject({
      code: 'BAD_INPUT',
      reason: 'download_failed',
      retryable,
    })
  })

  it('and refuses the connection fails, retryably', async () => {
    const server = await rawLoopback(() => {})
    const port = server.port === 65_535 ? 65_534 : server.port + 1
    expect(await rejection(get(`http://127.0.0.1:${port}/`, { allow: ['127.0.0.1'] }))).toMatchObject({
      reason: 'download_failed',
      retryable: true,
    })
  })

  it('and breaks off within the body fails, retryably', async () => {
    const server = await rawLoopback((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nonly this')
      setTimeout(() => socket.destroy(), 20)
    })
    expect(await rejection(bytesOf(await get(server.url, server.policy)))).toMatchObject({
      reason: 'download_failed',
      retryable: true,
    })
  })

  it('and breaks off within a gzip body fails, retryably', async () => {
    const server = await rawLoopback((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1000\r\n\r\n')
      socket.write(gzipSync(Buffer.alloc(5000)).subarray(0, 15))
      setTimeout(() => socket.destroy(), 20)
    })
    expect(await rejection(bytesOf(await get(server.url, server.policy)))).toMatchObject({
      reason: 'download_failed',
      retryable: true,
    })
  })

  it('and sends headers without end is cut off', async () => {
    const server = await rawLoopback((socket) => {
      const pour = () => {
        while (!socket.destroyed && socket.write(`x-header: ${'x'.repeat(1000)}\r\n`));
        socket.once('drain', pour)
      }
      socket.write('HTTP/1.1 200 OK\r\n')
      pour()
    })
    expect(await rejection(get(server.url, server.policy))).toMatchObject({ reason: 'download_failed' })
  })

  it.each([
    ['', (bytes: Buffer) => bytes],
    [', with gzip inside', gzipSync],
  ])('and sends chunks of a byte each is given up, and is not asked again%s', async (_, encode) => {
    const bytes = encode(randomBytes(100_000))
    const chunks = Array.from(bytes, (_byte, at) => Buffer.concat([chunkHead, bytes.subarray(at, at + 1), lineEnd]))
    const encoding = encode === gzipSync ? 'content-encoding: gzip\r\n' : ''
    const server = await rawLoopback((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${encoding}transfer-encoding: chunked\r\n\r\n`)
      socket.end(Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]))
    })
    expect(await rejection(bytesOf(await get(server.url, server.policy)))).toMatchObject({
      reason: 'download_failed',
      retryable: false,
      cause: { message: expect.stringContaining('few bytes each') },
    })
  })

  it('and sends interim answers without end is given up at once, and is not asked again', async () => {
    const server = await rawLoopback((socket) => {
      socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(10_000))
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    })
    expect(await rejection(get(server.url, server.policy))).toMatchObject({
      reason: 'download_failed',
      retryable: false,
      cause: { message: expect.stringContaining('interim answers') },
    })
  })

  it('is not one that sends a few interim answers before the answer', async () => {
    const server = await rawLoopback((socket) => {
      socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(10))
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    })
    expect(await textOf(await get(server.url, server.policy))).toBe('ok')
  })

  it('and wants to switch protocols fails', async () => {
    const server = await rawLoopback(
      (socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    )
    expect(await rejection(get(server.url, server.policy, { timeouts: { firstByteMs: 300 } }))).toMatchObject({
      reason: 'download_failed',
    })
  })
})

describe('timeouts', () => {
  const message = 'The URL could not be fetched'

  it('end a request that gets no answer', async () => {
    const server = await loopback(() => {})
    expect(await rejection(get(server.url, server.policy, { timeouts: { firstByteMs: 50 } }))).toMatchObject({
      reason: 'download_failed',
      retryable: true,
      message: expect.stringContaining(message),
      cause: { message: expect.stringContaining('50 ms') },
    })
  })

  it('are not put off by interim answers', async () => {
    const server = await rawLoopback((socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 100 Continue\r\n\r\n'), 10)
      socket.on('close', () => clearInterval(timer))
    })
    expect(await rejection(get(server.url, server.policy, { timeouts: { firstByteMs: 100 } }))).toMatchObject({
      reason: 'download_failed',
    })
  })

  it('end a body that stalls', async () => {
    const server = await loopback((_, response) => void response.write('the beginning'))
    const response = await get(server.url, server.policy, { timeouts: { idleMs: 50 } })
    expect(await rejection(bytesOf(response))).toMatchObject({ reason: 'download_failed', retryable: true })
  })

  it('that trickles is given up, even though it never stops, and is not retried', async () => {
    const server = await loopback((_, response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('.'), 5)
      response.on('close', () => clearInterval(timer))
    })
    // A busy machine may pause for a tenth of a second, which would be silence.
    const response = await get(server.url, server.policy, { timeouts: { idleMs: 1000, minBytesPerSecond: 1_000_000 } })
    expect(await rejection(bytesOf(response))).toMatchObject({ reason: 'download_failed', retryable: false })
  })

  it('that is too slow while others need the slot is given up, and may be retried', async () => {
    const server = await loopback((_, response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('x'.repeat(1000)), 5)
      response.on('close', () => clearInterval(timer))
    })
    let haste = 1
    const timeouts = { idleMs: 1000, minBytesPerSecond: 1000, haste: () => haste }
    const response = await get(server.url, server.policy, { timeouts })
    let bytes = 0
    const read = async () => {
      for await (const piece of response.body) {
        bytes += piece.length
        if (bytes > 30_000) haste = 1_000_000
      }
    }
    expect(await rejection(read())).toMatchObject({ reason: 'download_failed', retryable: true })
    expect(bytes).toBeGreaterThan(30_000)
  })

  it('end a body that trickles forever', async () => {
    const server = await loopback((_, response) => {
      const timer = setInterval(() => response.write('x'), 10)
      response.on('close', () => clearInterval(timer))
    })
    const response = await get(server.url, server.policy, { timeouts: { idleMs: 5_000, totalMs: 200 } })
    expect(await rejection(bytesOf(response))).toMatchObject({
      reason: 'download_failed',
      cause: { message: expect.stringContaining('200 ms') },
    })
  })

  it('do not count the time that a slow reader takes', async () => {
    const server = await loopback((_, response) => response.end('x'.repeat(500_000)))
    const response = await get(server.url, server.policy, { timeouts: { idleMs: 50 } })
    let bytes = 0
    for await (const piece of response.body) {
      if (bytes === 0) await new Promise((resolve) => setTimeout(resolve, 150))
      bytes += piece.length
    }
    expect(bytes).toBe(500_000)
  })

  it('end a resolver that never answers', async () => {
    const resolver = () => new Promise<never>(() => {})
    const error = await rejection(get('http://slow.example/', { resolver }, { timeouts: { connectMs: 50 } }))
    expect(error).toMatchObject({ reason: 'download_failed', message: expect.stringContaining(message) })
  })

  it('end a server that does not read what it is sent', async () => {
    const server = await rawLoopback((socket) => void socket.pause())
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-fetch-'))
    try {
      await writeFile(join(folder, 'file'), Buffer.alloc(30_000_000))
      const sending = get(server.url, server.policy, {
        method: 'PUT',
        body: createReadStream(join(folder, 'file')),
        timeouts: { idleMs: 200 },
      })
      expect(await rejection(sending)).toMatchObject({ reason: 'download_failed' })
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('an abort', () => {
  it.each(['resolving', 'waiting for the answer', 'reading the body'])(
    'while %s rejects with its reason and closes the connection',
    async (moment) => {
      const aborting = new AbortController()
      const reason = new Error('canceled')
      let closed: Promise<unknown> = Promise.resolve()
      const server = await loopback((request, response) => {
        closed = new Promise((resolve) => request.on('close', resolve))
        if (moment === 'reading the body') response.write('the beginning')
        setTimeout(() => aborting.abort(reason), 20)
      })
      const resolver = () => {
        setTimeout(() => aborting.abort(reason), 20)
        return new Promise<never>(() => {})
      }
      const url = moment === 'resolving' ? 'http://slow.example/' : server.url
      const fetching = get(url, { ...server.policy, resolver }, { signal: aborting.signal }).then(bytesOf)
      expect(await rejection(fetching)).toBe(reason)
      await closed
    },
  )

  it('before the fetch starts nothing', async () => {
    const reason = new Error('canceled')
    const server = await loopback((_, response) => response.end())
    expect(await rejection(get(server.url, server.policy, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(server.requests).toEqual([])
  })
})

describe('a body that is not wanted', () => {
  it.each(['cancel', 'break'])('frees the connection on %s', async (way) => {
    let closed: Promise<unknown> = Promise.resolve()
    const server = await loopback((_, response) => {
      closed = new Promise((resolve) => response.on('close', resolve))
      response.write('x'.repeat(100_000))
    })
    const response = await get(server.url, server.policy)
    if (way === 'cancel') response.cancel()
    else for await (const _ of response.body) break
    await closed
  })
})

describe('a fetch that is over', () => {
  it.each(['read to its end', 'canceled', 'left early', 'failed'])(
    "because it was %s leaves nothing on the caller's signal",
    async (ending) => {
      const server = await loopback((_, response) => response.end('hello'))
      const { signal } = new AbortController()
      const fetching = get(ending === 'failed' ? 'http://10.0.0.1/' : server.url, server.policy, { signal })
      if (ending === 'failed') await rejection(fetching)
      else if (ending === 'canceled') (await fetching).cancel()
      else for await (const _ of (await fetching).body) if (ending === 'left early') break
      expect(getEventListeners(signal, 'abort')).toEqual([])
    },
  )
})

describe('an upload that the server refuses half-way', () => {
  it('shows the answer, and the source is closed', async () => {
    const server = await rawLoopback((socket) =>
      socket.once('data', () => socket.write('HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno')),
    )
    const body = Readable.from(endless())
    const closed = new Promise((resolve) => body.on('close', resolve))
    const response = await get(server.url, server.policy, { method: 'PUT', body })
    expect(response.status).toBe(403)
    expect(await textOf(response)).toBe('no')
    await closed
  })
})

async function* endless(): AsyncGenerator<Buffer> {
  for (;;) yield Buffer.alloc(100_000)
}

describe('a broken allow list', () => {
  it("is the operator's error, not the client's", async () => {
    expect(
      await rejection(
        get('http://example.com/', {
          allow: ['10.0.0.0/99'],
          resolver: async () => [{ address: '8.8.8.8', family: 4 }],
        }),
      ),
    ).toMatchObject({ code: 'INVALID_OPTIONS' })
  })
})
