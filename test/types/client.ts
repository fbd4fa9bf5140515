import { type Client, ClientError, createClient, hasEnded, type Job, type JobStatus } from 'stemwork/client'
import { expectType } from './expect-type.js'

const client = createClient({ baseUrl: 'https://example.org/v1', apiKey: 'key', retries: 2 })
expectType<Client>()(client)

export async function use(): Promise<void> {
  const { downloadUrl } = await client.upload(new Uint8Array(1), {
    onProgress: ({ bytes }) => expectType<number>()(bytes),
  })
  const { id } = await client.createJob(
    { workflow: 'service/stems-vocals-accompaniment', params: { inputUrl: downloadUrl } },
    { idempotencyKey: 'order-1' },
  )
  const job = await client.waitForJob(id, { by: 'events', signal: AbortSignal.timeout(1000) })
  expectType<Job>()(job)
  expectType<JobStatus>()(job.status)
  expectType<boolean>()(hasEnded(job))
  const page = await client.listJobs({ status: ['QUEUED', 'STARTED'], size: 10 })
  expectType<string | undefined>()(page.next)
  const file = await client.download('https://example.org/vocals.wav', { range: { start: 0 } })
  expectType<ReadableStream<Uint8Array>>()(file.stream)
  // @ts-expect-error: not a status of the service
  await client.listJobs({ status: 'DONE' })
  // @ts-expect-error: not a way to wait
  await client.waitForJob(id, { by: 'magic' })
  // @ts-expect-error: a job has params
  await client.createJob({ workflow: 'service/none' })
}

export const statusOf = (error: unknown) => (ClientError.is(error) ? error.status : undefined)

// @ts-expect-error: where the service is has to be said
createClient({ apiKey: 'key' })
