import { randomBytes } from 'node:crypto'
import type { S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { s3Blobs } from '../../../src/adapters/blobs/s3/index.js'
import { type Service, startService } from '../../http/harness.js'
import { s3ClientOf } from '../../servers/s3-client.js'
import { type S3Server, startS3Server } from '../../servers/s3-server.js'

interface JobView {
  id: string
  status: string
  result: Record<string, string>
  error: { code: string; reason: string | null; message: string } | null
}

let server: S3Server
let client: S3Client
let service: Service

beforeAll(async () => {
  server = await startS3Server()
  client = s3ClientOf(server)
  service = await startService({
    blobs: s3Blobs({ client, bucket: 'test' }),
    http: { directStorage: true },
    engine: { limits: { maxFileBytes: 300_000 } },
  })
})

afterAll(async () => {
  await service.close()
  client.destroy()
  await server.close()
})

/** Sends the body to the ticket's address in the bucket and requests a job on it. */
async function createOn(body: RequestInit['body']): Promise<Response> {
  const ticket = (await (await service.api('/upload')).json()) as { uploadUrl: string; downloadUrl: string }
  expect(new URL(ticket.uploadUrl).origin).toBe(server.url)
  expect((await fetch(ticket.uploadUrl, { method: 'PUT', body })).status).toBe(200)
  return service.api('/job', {
    method: 'POST',
    body: JSON.stringify({
      name: 'direct',
      workflow: 'service/stems-vocals-accompaniment',
      params: { inputUrl: ticket.downloadUrl },
    }),
  })
}

async function jobOn(body: RequestInit['body']): Promise<JobView> {
  const created = await createOn(body)
  expect(created.ok).toBe(true)
  const { id } = (await created.json()) as { id: string }
  for (;;) {
    const job = (await (await service.api(`/job/${id}`)).json()) as JobView
    if (job.status === 'SUCCEEDED' || job.status === 'FAILED') return job
  }
}

function form(field: string, bytes: Uint8Array): FormData {
  const data = new FormData()
  data.append('title', 'a song')
  data.append(field, new Blob([bytes]), 'song.mp3')
  return data
}

async function download(url: string): Promise<Buffer> {
  const answer = await fetch(url)
  expect(answer.status).toBe(200)
  return Buffer.from(await answer.arrayBuffer())
}

describe('an upload that goes straight to the bucket', () => {
  const song = randomBytes(200_000)

  test('as the plain file is the input of its job, whose results come from the bucket', async () => {
    const job = await jobOn(song)
    expect(job.status).toBe('SUCCEEDED')
    expect(new URL(job.result.vocals!).origin).toBe(server.url)
    expect((await download(job.result.vocals!)).equals(song)).toBe(true)
    expect(server.bucket('test').keys('uploads/'), 'retention removes the input').toHaveLength(1)
  })

  test('as a form with the field filedata is unwrapped when the job reads it', async () => {
    const job = await jobOn(form('filedata', song))
    expect((await download(job.result.vocals!)).equals(song)).toBe(true)
  })

  test('as a form without that field, or a damaged one, fails the job with the reason', async () => {
    expect((await jobOn(form('other', song))).error).toMatchObject({
      code: 'BAD_INPUT',
      reason: 'decode_failed',
      message: expect.stringContaining('filedata'),
    })
    const whole = Buffer.from(await new Response(form('filedata', song)).arrayBuffer())
    expect((await jobOn(whole.subarray(0, 100_000))).error).toMatchObject({
      code: 'BAD_INPUT',
      reason: 'decode_failed',
    })
  })

  test('that is larger than the limit gets no job', async () => {
    const refused = await createOn(randomBytes(300_001))
    expect(refused.status).toBe(422)
    expect(await refused.json()).toMatchObject({ code: 'UPLOAD_REFUSED', reason: 'too_large' })
  })
})
