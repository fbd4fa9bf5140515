import { getEventListeners } from 'node:events'
import { Readable } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { s3Blobs } from '../../../src/adapters/blobs/s3/index.js'
import { listed, read, sourceOf } from '../../../src/contract/blob-samples.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { testEngine, textWorkflow } from '../../engine/harness.js'
import { s3ClientOf } from '../../servers/s3-client.js'
import { type S3Server, startS3Server } from '../../servers/s3-server.js'
import { type SilentProxy, startSilentProxy } from '../../servers/silent-proxy.js'

const key = 'results/job-1/1/vocals.wav'
const mebibyte = 1024 * 1024
const unavailable = { code: 'STORE_UNAVAILABLE', retryable: true }

let server: S3Server
let proxy: SilentProxy
let client: S3Client
let blobs: BlobStore

beforeEach(async () => {
  server = await startS3Server()
  proxy = await startSilentProxy(server.url)
  // No time limits, like the clients of hosts.
  client = s3ClientOf({ ...server, url: proxy.url })
  blobs = s3Blobs({ client, bucket: 'test', requestTimeoutMs: 300 })
})

afterEach(async () => {
  client.destroy()
  await proxy.close()
  await server.close()
})

/** Falls silent when the server receives the given request, before the answer is sent. */
function silentAt(method: string, part = ''): void {
  server.fault = (request) => {
    if (request.method === method && request.query.toString().includes(part)) void proxy.silence()
    return undefined
  }
}

describe('an S3 server whose connections are open and silent', () => {
  test.each(['put', 'get', 'stat', 'delete', 'deletePrefix', 'list', 'cleanUp'] as const)(
    'is an outage to %s, not a wait without end',
    async (method) => {
      // With the usual time limits: on a busy machine, the first request of a process takes longer than 300 ms.
      await s3Blobs({ client, bucket: 'test' }).put(key, sourceOf('text'))
      void proxy.silence()
      const call = {
        put: () => blobs.put(key, sourceOf('text')),
        get: () => blobs.get(key),
        stat: () => blobs.stat(key),
        delete: () => blobs.delete(key),
        deletePrefix: () => blobs.deletePrefix('results/job-1/'),
        list: () => listed(blobs, 'results/'),
        cleanUp: async () => blobs.cleanUp?.(Infinity),
      }[method]
      await expect(call()).rejects.toMatchObject(unavailable)
    },
  )

  test('ends a write at the request that makes it visible, in one piece or in parts', async () => {
    silentAt('PUT')
    await expect(blobs.put(key, sourceOf('text'))).rejects.toMatchObject(unavailable)
    proxy.speak()
    silentAt('POST', 'uploadId=')
    await expect(blobs.put(key, Readable.from([Buffer.alloc(6 * mebibyte)]))).rejects.toMatchObject(unavailable)
  })

  // Node 20 keeps a combined signal, with all that its listeners refer to, as long as it has any.
  test('is waited for by nothing that outlives a request', async () => {
    const signals: AbortSignal[] = []
    const { requestHandler } = client.config
    const handle = requestHandler.handle.bind(requestHandler)
    requestHandler.handle = (request, options: { abortSignal?: unknown } = {}) => {
      if (options.abortSignal instanceof AbortSignal) signals.push(options.abortSignal)
      return handle(request, options)
    }
    const patient = s3Blobs({ client, bucket: 'test' })
    await patient.put(key, sourceOf('text'))
    await patient.stat('missing')
    await patient.delete(key)
    expect(signals.length).toBeGreaterThanOrEqual(3)
    await vi.waitFor(() => expect(signals.flatMap((signal) => getEventListeners(signal, 'abort'))).toEqual([]))
  })

  test('is replaced by a new connection in the middle of a body', async () => {
    await blobs.put(key, Readable.from([Buffer.alloc(mebibyte, 7)]))
    // Bytes after the start of the silence arrive on a new connection.
    void proxy.silence(mebibyte / 2).then(() => proxy.speak())
    const found = await blobs.get(key)
    const body = found && (await read(found.body))
    expect(body?.equals(Buffer.alloc(mebibyte, 7))).toBe(true)
    // A busy machine may be taken for a silent server once more.
    expect(server.requests.filter(({ method }) => method === 'GET').length).toBeGreaterThan(1)
  })

  test('gives the slot of an interrupted job free again, and close() returns', async () => {
    const { engine, submit, parts } = testEngine(textWorkflow(), {}, { blobs })
    silentAt('PUT')
    const job = await submit()
    await engine.start()
    await expect.poll(() => server.requests.some(({ method }) => method === 'PUT')).toBe(true)
    await engine.close({ timeoutMs: 100 })
    expect(await parts.jobs.get(job.id)).toMatchObject({ status: 'QUEUED', attempts: 0, lease: null })
  })
})
