import { CompleteMultipartUploadCommand, HeadBucketCommand, type S3Client } from '@aws-sdk/client-s3'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { timedSend } from '../../../src/adapters/blobs/s3/plain-client.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** A client whose server never answers, and the options of its last call. */
function silentClient() {
  const calls: { requestTimeout?: number }[] = []
  const client = { send: (_command: unknown, options: object) => (calls.push(options), new Promise(() => {})) }
  return { send: timedSend(client as unknown as S3Client, 20_000), calls }
}

test('a server has 0.25 s more for each part that it joins, also by the limit of the client', async () => {
  const { send, calls } = silentClient()
  const Parts = Array.from({ length: 960 }, (_, index) => ({ PartNumber: index + 1 }))
  const MultipartUpload = { Parts }
  const ended = vi.fn()
  send(new CompleteMultipartUploadCommand({ Bucket: 'b', Key: 'k', UploadId: 'u', MultipartUpload })).catch(ended)
  await vi.advanceTimersByTimeAsync(259_000)
  expect(ended).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(ended).toHaveBeenCalledOnce()
  expect(calls).toMatchObject([{ requestTimeout: 260_000 }])
})

test('other calls have the usual time, and the limit of the client', async () => {
  const { send, calls } = silentClient()
  const ended = vi.fn()
  send(new HeadBucketCommand({ Bucket: 'b' })).catch(ended)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(ended).toHaveBeenCalledOnce()
  expect(calls[0]).not.toHaveProperty('requestTimeout')
})
