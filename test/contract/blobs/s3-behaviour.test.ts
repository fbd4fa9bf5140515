import { createHash, randomBytes } from 'node:crypto'
import { CreateMultipartUploadCommand, type S3Client, UploadPartCommand } from '@aws-sdk/client-s3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { read, sourceOf } from '../../../src/contract/blob-samples.js'
import { withFaults } from '../../../src/contract/index.js'
import { s3Blobs } from '../../../src/adapters/blobs/s3/index.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { s3ClientOf } from '../../servers/s3-client.js'
import { type S3Server, startS3Server } from '../../servers/s3-server.js'

const key = 'results/job-1/1/vocals.wav'
const mebibyte = 1024 * 1024
const unavailable = { code: 'STORE_UNAVAILABLE', retryable: true }

let server: S3Server
let client: S3Client
let store: BlobStore

beforeEach(async () => {
  server = await startS3Server()
  client = s3ClientOf(server)
  store = s3Blobs({ client, bucket: 'test' })
})

afterEach(async () => {
  client.destroy()
  await server.close()
})

async function* blocks(
  count: number,
  onBlock: (block: number) => void = () => {},
): AsyncGenerator<Uint8Array, void, void> {
  for (let block = 0; block < count; block++) {
    onBlock(block)
    yield Buffer.alloc(mebibyte, block)
  }
}

async function text(found: Awaited<ReturnType<BlobStore['get']>>): Promise<string | undefined> {
  return found && (await read(found.body)).toString('latin1')
}

async function* nothing(): AsyncGenerator<Uint8Array, void, void> {}

const unfinishedUploads = () => server.bucket('test').uploads.size
const requests = (method: string, part = '') =>
  server.requests.filter((request) => request.method === method && request.query.toString().includes(part))

describe('a large blob', () => {
  test('travels in parts and comes back whole', async () => {
    const stat = await store.put(key, blocks(17), { contentType: 'audio/wav' })
    expect(stat).toMatchObject({ bytes: 17 * mebibyte, contentType: 'audio/wav' })
    expect(requests('PUT', 'partNumber=')).toHaveLength(4)
    const found = await store.get(key)
    const expected = createHash('sha256')
    for await (const block of blocks(17)) expected.update(block)
    const actual = createHash('sha256')
    for await (const chunk of found?.body ?? []) actual.update(chunk)
    expect(actual.digest('hex')).toBe(expected.digest('hex'))
    expect(unfinishedUploads()).toBe(0)
  })

  test.each([
    ['nothing', 0, 0],
    ['a byte less than a part', 5 * mebibyte - 1, 0],
    ['exactly a part', 5 * mebibyte, 1],
    ['a byte more than a part', 5 * mebibyte + 1, 2],
    ['exactly two parts', 10 * mebibyte, 2],
  ])('of %s has as many parts as it needs', async (_, bytes, parts) => {
    const whole = Buffer.alloc(bytes, 7)
    const source = async function* () {
      // One buffer for all chunks, as some sources do.
      const chunk = Buffer.alloc(700_001)
      for (let start = 0; start < bytes; start += chunk.length)
        yield chunk.subarray(0, whole.copy(chunk, 0, start, start + chunk.length))
    }
    expect((await store.put(key, source())).bytes).toBe(bytes)
    expect(requests('PUT', 'partNumber')).toHaveLength(parts)
    const found = await store.get(key)
    expect(found && (await read(found.body)).equals(whole)).toBe(true)
  })

  test('leaves no parts when its source fails', async () => {
    const lost = new Error('the client went away')
    const source = blocks(20, (block) => {
      if (block === 14) throw lost
    })
    await expect(store.put(key, source)).rejects.toBe(lost)
    expect(requests('PUT', 'partNumber=').length).toBeGreaterThan(0)
    expect(unfinishedUploads()).toBe(0)
    expect(await store.stat(key)).toBeUndefined()
  })

  test('leaves no parts when it is aborted, even in the middle of a part', async () => {
    const control = new AbortController()
    const reason = new Error('canceled')
    server.fault = ({ query }) => {
      if (query.get('partNumber') === '2') control.abort(reason)
      return undefined
    }
    await expect(store.put(key, blocks(40), { signal: control.signal })).rejects.toBe(reason)
    expect(unfinishedUploads()).toBe(0)
  })

  test('whose part is refused for good ends its source at once', async () => {
    let ended = false
    const endless = async function* () {
      try {
        yield* blocks(Infinity)
      } finally {
        ended = true
      }
    }
    server.fault = ({ query }) => (query.get('partNumber') === '1' ? 'slow down' : undefined)
    await expect(store.put(key, endless())).rejects.toMatchObject(unavailable)
    expect(ended).toBe(true)
    expect(unfinishedUploads()).toBe(0)
  })

  test('that another process writes fails when its folder is deleted', async () => {
    const elsewhere = s3Blobs({ client, bucket: 'test' })
    const source = async function* () {
      yield* blocks(11)
      await elsewhere.deletePrefix('results/job-1/')
      yield* blocks(11)
    }
    await expect(store.put(key, source())).rejects.toMatchObject(unavailable)
    expect(await store.stat(key)).toBeUndefined()
    expect(unfinishedUploads()).toBe(0)
  })

  test('is written once by writers that race with ifAbsent', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 3 }, () => store.put(key, blocks(6), { ifAbsent: true })),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'ALREADY_EXISTS' })
    expect(unfinishedUploads()).toBe(0)
  })
})

describe("the host's client", () => {
  test('may be at its default checksums: none are sent with objects, nor put into links', async () => {
    await store.put(key, sourceOf('small'))
    await store.put('results/large', blocks(11))
    const uploads = requests('PUT')
    expect(uploads.length).toBeGreaterThan(3)
    for (const { headers } of [...uploads, ...requests('POST', 'uploads')])
      expect(Object.keys(headers).filter((name) => /checksum|trailer/.test(name))).toEqual([])
    const link = await store.signPut?.(key, { expiresInSeconds: 60 })
    expect(link).not.toMatch(/checksum/i)
    expect(await client.config.requestChecksumCalculation()).toBe('WHEN_SUPPORTED')
  })

  test('has its middleware called for every request, even if added after the store was created', async () => {
    const commands: (string | undefined)[] = []
    client.middlewareStack.add(
      (next, context) => async (args) => {
        commands.push((context as { commandName?: string }).commandName)
        return await next(args)
      },
      { step: 'initialize' },
    )
    await store.put(key, blocks(11))
    await store.delete(key)
    const parts = commands.filter((command) => command === 'UploadPartCommand')
    expect(parts).toHaveLength(3)
    expect(commands.filter((command) => command !== 'UploadPartCommand')).toEqual([
      'CreateMultipartUploadCommand',
      'CompleteMultipartUploadCommand',
      'HeadObjectCommand',
      'DeleteObjectCommand',
    ])
  })

  test('may address buckets as it likes, and the store keeps to its prefix', async () => {
    const media = s3Blobs({ client, bucket: 'test', prefix: 'media/v1/' })
    await media.put(key, sourceOf('inside'))
    await store.put('results/other', sourceOf('outside'))
    expect(server.bucket('test').keys('')).toEqual([`media/v1/${key}`, 'results/other'])
    expect(await media.deletePrefix('results/')).toBe(1)
    expect(await text(await store.get('results/other'))).toBe('outside')
  })

  test('gets refusals of options that S3 does not allow', () => {
    expect(() => s3Blobs({ client, bucket: 'test', partBytes: 1000 })).toThrow(/at least 5242880/)
    expect(() => s3Blobs({ client, bucket: 'test', prefix: '../x' })).toThrow(/prefix/)
  })
})

describe('a write whose answer is lost', () => {
  for (const [size, source] of [
    ['small', () => sourceOf('hello')],
    ['large', () => blocks(6)],
  ] as const) {
    test(`is found to have happened (${size}), with ifAbsent too`, async () => {
      server.fault = ({ method, query }) =>
        (method === 'PUT' && !query.has('partNumber')) || (method === 'POST' && query.has('uploadId'))
          ? 'cut after'
          : undefined
      const stat = await store.put(key, source(), { ifAbsent: true })
      expect(await store.stat(key)).toEqual(stat)
      expect(unfinishedUploads()).toBe(0)
      server.fault = undefined
      await expect(store.put(key, source(), { ifAbsent: true })).rejects.toMatchObject({ code: 'ALREADY_EXISTS' })
    })
  }

  for (const moment of ['before', 'after'] as const) {
    test(`${moment} any request leaves the old blob or the new one, and only parts that cleanUp finds`, async () => {
      for (let occurrence = 1, struck = true; struck; occurrence++) {
        struck = false
        await store.put(key, sourceOf('old'))
        const faulty = withFaults(client, (call) => {
          if (call.method !== 'send' || call.occurrence !== occurrence || call.moment !== moment) return undefined
          struck = true
          return new Error('Injected fault')
        })
        const outcome = await s3Blobs({ client: faulty, bucket: 'test' })
          .put(key, blocks(6))
          .catch((error: unknown) => error)
        const bytes = (await store.stat(key))?.bytes
        if (outcome instanceof Error) expect(outcome).toMatchObject(unavailable)
        expect(bytes).toBe(outcome instanceof Error ? 3 : 6 * mebibyte)
        await store.cleanUp?.(Infinity)
        expect(unfinishedUploads()).toBe(0)
      }
    })
  }
})

describe('a server', () => {
  test('that ignores If-None-Match still has its existing blobs left alone', async () => {
    server.conditions = 'ignore'
    await store.put(key, sourceOf('first'), { ifAbsent: true })
    await expect(store.put(key, sourceOf('second'), { ifAbsent: true })).rejects.toMatchObject({
      code: 'ALREADY_EXISTS',
    })
    expect(await text(await store.get(key))).toBe('first')
  })

  test('that refuses If-None-Match gets the blob without it, small or large', async () => {
    server.conditions = 'refuse'
    for (const [name, source] of [
      ['small', sourceOf('x')],
      ['large', blocks(6)],
    ] as const) {
      await store.put(`uploads/app/${name}`, source, { ifAbsent: true })
      await expect(store.put(`uploads/app/${name}`, sourceOf('y'), { ifAbsent: true })).rejects.toMatchObject({
        code: 'ALREADY_EXISTS',
      })
    }
    expect(unfinishedUploads()).toBe(0)
  })

  test('that lacks requests for many objects or for unfinished uploads gets one for each object', async () => {
    for (const name of ['delete', 'uploads']) server.lacks.add(name)
    for (let n = 0; n < 3; n++) await store.put(`results/job-1/1/${n}`, sourceOf('x'))
    expect(await store.deletePrefix('results/job-1/')).toBe(3)
    expect(server.bucket('test').keys('')).toEqual([])
    expect(await store.cleanUp?.(Infinity)).toBe(0)
  })

  test('that asks to slow down is asked again', async () => {
    let refusals = 1
    server.fault = () => (refusals-- > 0 ? 'slow down' : undefined)
    await store.put(key, sourceOf('patience'))
    expect(await text(await store.get(key))).toBe('patience')
  })

  test('that is overloaded, down, or lacks the bucket is an error, never an absent blob', async () => {
    const asks = (blobs: BlobStore) => [
      () => blobs.get(key),
      () => blobs.stat(key),
      () => blobs.put(key, sourceOf('x')),
      () => blobs.delete(key),
      () => blobs.deletePrefix('results/'),
      () => blobs.cleanUp?.(Infinity),
      () => blobs.list('results/')[Symbol.asyncIterator]().next(),
    ]
    const missing = s3Blobs({ client, bucket: 'missing' })
    for (const ask of asks(missing)) await expect(ask()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    server.fault = () => 'slow down'
    for (const ask of asks(store))
      await expect(ask()).rejects.toMatchObject({ ...unavailable, cause: expect.anything() })
    const away = s3ClientOf({ ...server, url: 'http://127.0.0.1:1' }, { maxAttempts: 1 })
    for (const ask of asks(s3Blobs({ client: away, bucket: 'test' })))
      await expect(ask()).rejects.toMatchObject({ ...unavailable, cause: expect.any(Error) })
    away.destroy()
  })
})

describe('a download that breaks off', () => {
  const bytes = randomBytes(3 * mebibyte)

  test('continues where it broke, with its range and its version', async () => {
    await store.put(key, sourceOf(bytes))
    let cuts = 0
    server.fault = ({ method }) => (method === 'GET' && cuts++ < 4 ? { cutAfterBytes: 400_000 } : undefined)
    expect((await read((await store.get(key))?.body ?? nothing())).equals(bytes)).toBe(true)
    cuts = 0
    const part = await store.get(key, { range: { start: 1000, end: 2_000_000 } })
    expect(part?.stat.bytes).toBe(bytes.byteLength)
    expect((await read(part?.body ?? nothing())).equals(bytes.subarray(1000, 2_000_001))).toBe(true)
    expect(requests('GET').at(-1)?.headers['if-match']).toBe(`"${part?.stat.etag}"`)
  })

  test('fails when the blob is another one by then, or gone', async () => {
    for (const change of [() => store.put(key, sourceOf(randomBytes(bytes.byteLength))), () => store.delete(key)]) {
      await store.put(key, sourceOf(bytes))
      server.fault = ({ method }) => (method === 'GET' ? { cutAfterBytes: 400_000 } : undefined)
      const found = await store.get(key)
      await change()
      await expect(read(found?.body ?? nothing())).rejects.toMatchObject(unavailable)
    }
  })

  test('fails when nothing comes any more', async () => {
    await store.put(key, sourceOf(bytes))
    server.fault = ({ method }) =>
      method !== 'GET' ? undefined : requests('GET').length === 1 ? { cutAfterBytes: 400_000 } : 'cut before'
    const broken = await store.get(key)
    await expect(read(broken?.body ?? nothing())).rejects.toMatchObject(unavailable)
    expect(requests('GET').length).toBeLessThan(6)
  })
})

describe('a body', () => {
  test('that is ended unread gives its connection back', async () => {
    await store.put(key, sourceOf(randomBytes(3 * mebibyte)))
    // More than the SDK's 50 connections.
    for (let n = 0; n < 60; n++) await (await store.get(key))?.body[Symbol.asyncIterator]().return?.()
    expect(await store.stat(key)).toBeDefined()
  })
})

describe('removing', () => {
  test('2,001 blobs takes three requests', async () => {
    for (let n = 0; n < 2001; n++)
      await server
        .bucket('test')
        .put(`results/many/${n}`, { chunks: sourceOf('x') as AsyncIterable<Buffer>, md5: () => 'e' }, {}, {})
    expect(await store.deletePrefix('results/many/')).toBe(2001)
    expect(requests('POST', 'delete')).toHaveLength(3)
    expect(server.bucket('test').keys('')).toEqual([])
  })

  test('old unfinished uploads leaves young ones, and those that this process is writing', async () => {
    for (let n = 0; n < 5; n++) {
      const { UploadId } = await client.send(
        new CreateMultipartUploadCommand({ Bucket: 'test', Key: `results/old/${n}` }),
      )
      await client.send(
        new UploadPartCommand({
          Bucket: 'test',
          Key: `results/old/${n}`,
          UploadId,
          PartNumber: 1,
          Body: Buffer.alloc(10),
        }),
      )
    }
    const hour = 60 * 60 * 1000
    const longAgo = new Date(Date.now() - 2 * hour)
    for (const [n, upload] of [...server.bucket('test').uploads.values()].slice(0, 4).entries()) {
      upload.initiatedAt = longAgo
      // The last part is still being written by another process, so it is new.
      if (n < 3) for (const part of upload.parts.values()) part.storedAt = longAgo
    }
    const source = async function* () {
      yield* blocks(11)
      for (const upload of server.bucket('test').uploads.values())
        if (upload.key === key) upload.initiatedAt = new Date(Date.now() - 2 * hour)
      expect(await store.cleanUp?.(Date.now() - hour)).toBe(3)
      yield* blocks(1)
    }
    await store.put(key, source())
    expect(unfinishedUploads()).toBe(2)
    expect(await store.cleanUp?.(Date.now() + 1000)).toBe(2)
  })
})

describe('links', () => {
  test('to download give the file its name and type, take ranges, and end', async () => {
    await store.put(key, sourceOf('0123456789'))
    const link =
      (await store.signGet?.(key, { expiresInSeconds: 60, fileName: 'vöcals "1".wav', contentType: 'audio/wav' })) ?? ''
    const answer = await fetch(link)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('audio/wav')
    expect(answer.headers.get('content-disposition')).toBe(
      `attachment; filename="v_cals _1_.wav"; filename*=UTF-8''v%C3%B6cals%20%221%22.wav`,
    )
    expect(await answer.text()).toBe('0123456789')
    expect(await (await fetch(link, { headers: { range: 'bytes=2-4' } })).text()).toBe('234')
    expect((await fetch(link.replace('vocals.wav', 'other.wav'))).status).toBe(403)
    const short =
      (await store.signGet?.(key, { expiresInSeconds: 1, fileName: 'a.wav', contentType: 'audio/wav' })) ?? ''
    while ((await fetch(short)).status === 200);
    expect((await fetch(short)).status).toBe(403)
  })

  test('to upload take one file of any type', async () => {
    const link = (await store.signPut?.('uploads/app/1', { expiresInSeconds: 60 })) ?? ''
    expect((await fetch(link, { method: 'PUT', body: 'raw', headers: { 'content-type': 'audio/mpeg' } })).status).toBe(
      200,
    )
    expect((await store.stat('uploads/app/1'))?.contentType).toBe('audio/mpeg')
    expect((await fetch(link.replace('app/1', 'app/2'), { method: 'PUT', body: 'raw' })).status).toBe(403)
  })

  test('may lead to another address of the same server', async () => {
    const outside = s3ClientOf({ ...server, url: 'https://files.example.com' })
    const link = await s3Blobs({ client, bucket: 'test', linkClient: outside }).signGet?.(key, {
      expiresInSeconds: 60,
      fileName: 'a.wav',
      contentType: 'audio/wav',
    })
    expect(link).toMatch(/^https:\/\/files\.example\.com\/test\/results/)
    outside.destroy()
  })
})
