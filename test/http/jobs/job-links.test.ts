import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createClient, type JobLink } from '../../../src/client/client.js'
import { JobLinks } from '../../../src/core/engine/links/job-links.js'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { settableClock } from '../../contract/stores/settable-clock.js'
import { type JobJson, separated, type Service, serviceOfTest, startService } from '../harness.js'

let service: Service
let job: JobJson
let other: JobJson
beforeAll(async () => {
  service = await startService({ http: { console: true } })
  ;[job, other] = await Promise.all([ended('A song'), ended('Another song')])
})
afterEach(() => vi.useRealTimers())
afterAll(() => service.close())

function ended(name: string): Promise<JobJson> {
  return separated(service, Buffer.from('the song'), { name, batchName: 'secret plans', metadata: { price: '12' } })
}

const client = () => createClient({ baseUrl: service.base, apiKey: service.app.key })
/** The key that the page of a link sends. */
const keyOf = ({ url }: JobLink) => `job-link ${new URL(url).hash.slice('#job='.length)}`
const ask = (link: JobLink, path: string, init: RequestInit = {}) => service.api(path, { ...init, key: keyOf(link) })
const refusal = async (answer: Response) => [answer.status, ((await answer.json()) as { reason?: string }).reason]

describe('a link to a job', () => {
  test('opens its status and results, without what was sent, and counts who opens it', async () => {
    const link = await client().createJobLink(job.id)
    expect(link.url).toMatch(new RegExp(`^${service.base}/console#job=${job.id}/${link.id}\\?`))
    const seen = (await (await ask(link, `/job/${job.id}`)).json()) as JobJson
    expect(seen).toMatchObject({ name: 'A song', status: 'SUCCEEDED', workflowParams: {}, metadata: {} })
    expect(JSON.stringify(seen)).not.toMatch(/secret plans|price|\/uploads\//)
    expect(await (await fetch(seen.result?.vocals ?? '')).text()).toBe('the song')
    expect((await ask(link, `/job/${job.id}/status`)).status).toBe(200)
    const opens = await Promise.all([1, 2, 3].map(() => ask(link, `/job/${job.id}/opened`, { method: 'POST' })))
    expect(opens.map(({ status }) => status)).toEqual([204, 204, 204])
    expect(await client().jobLinks(job.id)).toEqual([{ ...link, opens: 3 }])
    expect(await client().jobLinks(other.id)).toEqual([])
  })

  test('opens nothing else, and changes nothing', async () => {
    const link = await client().createJobLink(job.id)
    const requests: [string, RequestInit?][] = [
      [`/job/${other.id}`],
      [`/job/${other.id}/peaks/vocals`],
      [`/job/${other.id}/opened`, { method: 'POST' }],
      ['/job'],
      ['/job/events'],
      [`/job/${job.id}/events`],
      [`/archive?job=${job.id}`],
      ['/upload'],
      ['/application'],
      [`/job/${job.id}/link`],
      [`/job/${job.id}/link`, { method: 'POST', body: '{}' }],
      [`/job/${job.id}/cancel`, { method: 'POST' }],
      [`/job/${job.id}`, { method: 'DELETE' }],
    ]
    for (const [path, init] of requests) expect([path, (await ask(link, path, init)).status]).toEqual([path, 403])
    const forged = { ...link, url: link.url.replace(`#job=${job.id}`, `#job=${other.id}`) }
    expect(await refusal(await ask(forged, `/job/${other.id}`))).toEqual([403, 'link_incomplete'])
    expect((await service.api(`/job/${job.id}`)).status).toBe(200)
  })

  test('ends when it expires', async () => {
    const link = await client().createJobLink(job.id, { expiresInSeconds: 60 })
    const { result } = (await (await ask(link, `/job/${job.id}`)).json()) as JobJson
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse(link.expiresAt) + 1000 })
    expect(await refusal(await ask(link, `/job/${job.id}`))).toEqual([403, 'link_expired'])
    expect((await fetch(result?.vocals ?? '')).status).toBe(403)
  })

  test('opens nothing once it is revoked, not even its files; other links still work', async () => {
    const [link, kept] = [await client().createJobLink(job.id), await client().createJobLink(job.id)]
    const { result } = (await (await ask(link, `/job/${job.id}`)).json()) as JobJson
    const own = (await (await service.api(`/job/${job.id}`)).json()) as JobJson
    await client().revokeJobLink(job.id, link.id)
    await client().revokeJobLink(job.id, link.id)
    expect(await refusal(await ask(link, `/job/${job.id}`))).toEqual([410, 'link_revoked'])
    expect(await refusal(await fetch(result?.vocals ?? ''))).toEqual([410, 'link_revoked'])
    expect((await fetch(own.result?.vocals ?? '')).status).toBe(200)
    expect((await ask(kept, `/job/${job.id}`)).status).toBe(200)
    expect((await client().jobLinks(job.id)).map(({ id }) => id)).not.toContain(link.id)
  })

  test('is created only by the application of the job, for at most a year, and if there is a console', async () => {
    const { key } = await service.addApplication('Stranger')
    const stranger = createClient({ baseUrl: service.base, apiKey: key })
    await expect(stranger.createJobLink(job.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(stranger.jobLinks(job.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const tooLong = client().createJobLink(job.id, { expiresInSeconds: 366 * 24 * 60 * 60 })
    await expect(tooLong).rejects.toMatchObject({ code: 'BAD_INPUT' })
    const plain = await serviceOfTest()
    expect((await plain.api(`/job/${job.id}/link`)).status).toBe(404)
  })
})

test('nothing of the links to a job is left once it is deleted', async () => {
  const { id } = await ended('A third song')
  await client().createJobLink(id)
  await client().createJobLink(id)
  expect(await service.engine.links.list(id)).toHaveLength(2)
  await client().deleteJob(id)
  expect(await service.engine.links.list(id)).toEqual([])
})

test('a link is listed even if the record of another cannot be read, which goes with the job like all', async () => {
  const { documents, time } = memoryJobs()
  const links = new JobLinks(documents, { time })
  const link = await links.create('a', { expiresInMs: 1e6 })
  await documents.put({ kind: 'job-link', key: 'a/0', value: { id: '0' }, ttlMs: 1e6 })
  expect(await links.list('a')).toEqual([link])
  await links.revokeAll('a')
  expect([await links.isOpen('a', link.id), await links.isOpen('a', '0')]).toEqual([false, false])
})

test('a job has at most 50 links', async () => {
  const { documents, time } = memoryJobs()
  const links = new JobLinks(documents, { time })
  for (let made = 0; made < 50; made++) await links.create('a', { expiresInMs: 1e6 })
  await expect(links.create('a', { expiresInMs: 1e6 })).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(await links.list('a')).toHaveLength(50)
  await links.create('0', { expiresInMs: 1e6 })
})

test('a job has at most 50 links that are made at the same time, and each is listed', async () => {
  const { documents, time } = memoryJobs()
  const links = new JobLinks(documents, { time })
  for (let made = 0; made < 45; made++) await links.create('a', { expiresInMs: 1e6 })
  await Promise.allSettled(Array.from({ length: 20 }, () => links.create('a', { expiresInMs: 1e6 })))
  const stored = await documents.list('job-link', { limit: 100 })
  expect(stored.length).toBeLessThanOrEqual(50)
  expect(await links.list('a')).toHaveLength(stored.length)
})

test('a link ends by the time of the store, whatever the clock of the node on which it is opened says', async () => {
  const { clock, advance } = settableClock()
  const { documents, time } = memoryJobs({ clock })
  const links = new JobLinks(documents, { time })
  const { id, createdAt, expiresAt } = await links.create('a', { expiresInMs: 60_000 })
  expect([createdAt, expiresAt]).toEqual([clock(), clock() + 60_000])
  await links.countOpen('a', id)
  advance(59_000)
  expect(await links.isOpen('a', id)).toBe(true)
  await links.countOpen('a', id)
  advance(2000)
  expect(await links.isOpen('a', id)).toBe(false)
})
