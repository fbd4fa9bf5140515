import { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type JobJson, type Service, serviceOfTest, startService } from '../harness.js'

let service: Service
const ids: string[] = []

beforeAll(async () => {
  service = await startService({ worker: false })
  for (let index = 0; index < 7; index++) {
    const metadata = { index: String(index) }
    const batchName = index < 3 ? 'night run' : null
    ids.unshift(await service.created({ name: `job ${index}`, batchName, metadata }))
    // Jobs of the same millisecond are ordered by id; these tests need the order of creation.
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
})
afterAll(() => service.close())

async function list(
  query: string,
): Promise<{ ids: string[]; jobs: JobJson[]; total: string | null; next: string | undefined }> {
  const answer = await service.api(`/job${query}`)
  expect(answer.status).toBe(200)
  const jobs = (await answer.json()) as JobJson[]
  const next = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
  return {
    jobs,
    ids: jobs.map((job) => job.id),
    total: answer.headers.get('x-total-count'),
    next: next?.slice(service.base.length + '/job'.length),
  }
}

describe('paging', () => {
  test('is newest first, 100 rows unless asked otherwise, with the total', async () => {
    expect(await list('')).toMatchObject({ ids, total: '7', next: undefined })
  })

  test('by number counts pages from 0', async () => {
    expect((await list('?page=0&size=3')).ids).toEqual(ids.slice(0, 3))
    expect((await list('?page=2&size=3')).ids).toEqual(ids.slice(6))
    expect((await list('?page=3&size=3')).ids).toEqual([])
  })

  test('by number reaches the first 10,000 jobs, and says how to go further', async () => {
    expect((await list('?page=100&size=100')).ids).toEqual([])
    const answer = await service.api('/job?page=101&size=100')
    expect(answer.status).toBe(400)
    const { errors } = (await answer.json()) as { errors: { path: string; message: string }[] }
    expect(errors).toEqual([{ path: 'page', message: expect.stringContaining('follow the Link header') }])
  })

  test('by the Link header returns every job once, even if new ones arrive and read ones are deleted', async () => {
    const seen: string[] = []
    let page: string | undefined = '?size=2&status=QUEUED'
    const extra: string[] = []
    while (page !== undefined) {
      const got: Awaited<ReturnType<typeof list>> = await list(page)
      seen.push(...got.ids)
      extra.push(await service.created())
      page = got.next
      if (page !== undefined) await service.engine.cancel(got.ids[got.ids.length - 1]!)
    }
    expect(seen).toEqual(ids)
    for (const id of extra) await service.api(`/job/${id}`, { method: 'DELETE' })
  })

  test('by after takes a plain job id, and says so if the job is gone', async () => {
    expect((await list(`?after=${ids[4]}`)).ids).toEqual(ids.slice(5))
    const gone = await service.api('/job?after=00000000-0000-4000-8000-000000000000')
    expect(gone.status).toBe(400)
    expect(await gone.json()).toMatchObject({ errors: [{ path: 'after' }] })
  })
})

describe('filters', () => {
  test('by batch, with metadata and batch shown', async () => {
    const { jobs, total } = await list('?batchName=night%20run')
    expect(total).toBe('3')
    expect(jobs.map((job) => [job.batchName, job.metadata])).toEqual(
      [2, 1, 0].map((index) => ['night run', { index: String(index) }]),
    )
  })

  test('by status and workflow, each repeated', async () => {
    const all = (await list('?status=QUEUED&status=FAILED&workflow=service/held&workflow=service/other')).ids
    expect(all).toEqual(ids)
    expect((await list('?status=SUCCEEDED')).ids).toEqual([])
    expect((await list('?workflow=service/other')).ids).toEqual([])
  })

  test('by words of the name and the batch name, or by id', async () => {
    expect((await list('?search=NIGHT%20j%C3%B4b%201')).ids).toEqual([ids[5]])
    expect(await list('?search=job&size=2')).toMatchObject({ ids: ids.slice(0, 2), total: '7' })
    expect((await list(`?search=${ids[3]}`)).ids).toEqual([ids[3]])
    expect((await list('?search=none')).ids).toEqual([])
    expect((await service.api('/job?search=')).status).toBe(400)
  })

  test('by time: from the first time on, before the second', async () => {
    const { jobs } = await list('')
    const query = new URLSearchParams({ createdAfter: jobs[4]!.createdAt, createdBefore: jobs[2]!.createdAt })
    expect((await list(`?${query.toString()}`)).ids).toEqual([ids[3], ids[4]])
  })

  test('by the time at which they ended, where those that have not ended are left out', async () => {
    const ended = ids[6]!
    const { completedAt } = (await (await service.api(`/job/${ended}/cancel`, { method: 'POST' })).json()) as JobJson
    const since = new URLSearchParams({ completedAfter: completedAt! })
    expect((await list(`?${since.toString()}`)).ids).toEqual([ended])
    const { jobs } = await list('?completedAfter=2000-01-01T00:00:00Z')
    expect(new Set(jobs.map(({ status }) => status))).toEqual(new Set(['FAILED']))
    expect((await list('?completedBefore=2000-01-01T00:00:00Z')).ids).toEqual([])
  })
})

test.each([
  'page=-1',
  'page=x',
  'page=1.5',
  'size=0',
  'size=101',
  'size=',
  'status=DONE',
  'status=QUEUED&status=x',
  'createdAfter=yesterday',
  'completedAfter=yesterday',
  'after=1',
  'page=1&page=2',
  'batchName=',
])('%s is out of range: 400 that names the field, never a silent clamp', async (query) => {
  const answer = await service.api(`/job?${query}`)
  expect(answer.status).toBe(400)
  const { errors } = (await answer.json()) as { errors: { path: string }[] }
  expect(errors[0]!.path.split('.')[0]).toBe(query.split('=')[0])
})

test('workflows are paged in the same way', async () => {
  const names = async (query: string) =>
    ((await (await service.api(`/workflow?${query}`)).json()) as { workflows: { id: string }[] }).workflows.map(
      ({ id }) => id,
    )
  expect(await names('page=0&size=1')).toEqual(['service/stems-vocals-accompaniment'])
  expect(await names('page=1&size=1')).toEqual(['service/held'])
  expect(await names('page=2&size=1')).toEqual([])
})

test('a workflow has the schema of its params, under its id with slashes plain or encoded', async () => {
  const stems = 'service/stems-vocals-accompaniment'
  for (const id of [stems, encodeURIComponent(stems)]) {
    expect(await (await service.api(`/workflow/${id}`)).json()).toMatchObject({
      id: stems,
      params: { type: 'object', required: ['inputUrl'], properties: { inputUrl: { type: 'string' } } },
    })
  }
  const unknown = await service.api('/workflow/service/unheard-of')
  expect([unknown.status, ((await unknown.json()) as { code: string }).code]).toEqual([404, 'NOT_FOUND'])
})

describe('lists of large jobs', () => {
  const large = { params: { note: 'x'.repeat(16_000) } }

  /** A service with 40 large jobs, and a record of the lists requested from its engine. */
  async function startLarge(other: { requests: number; perSeconds: number } | false) {
    const own = await serviceOfTest({ worker: false, http: { rateLimits: { create: false, other } } })
    for (let index = 0; index < 40; index++) await own.submit(large)
    const asked = { rows: [] as number[], running: 0, most: 0, turnsBetween: [] as number[] }
    /** Turns of the event loop. */
    let turns = 0
    let turnsBefore = 0
    const counter = () => {
      turns++
      immediate = setImmediate(counter)
    }
    let immediate = setImmediate(counter)
    onTestFinished(() => clearImmediate(immediate))
    const real = own.engine.list.bind(own.engine)
    own.engine.list = async (page) => {
      if (asked.rows.length > 0) asked.turnsBetween.push(turns - turnsBefore)
      asked.rows.push(page.limit)
      asked.most = Math.max(asked.most, ++asked.running)
      await new Promise((resolve) => setImmediate(resolve))
      return await real(page).finally(() => {
        asked.running--
        turnsBefore = turns
      })
    }
    return { own, asked }
  }

  test('are read a few rows at a time, so that others are served in between', async () => {
    const { own, asked } = await startLarge(false)
    const write = vi.spyOn(ServerResponse.prototype, 'write')
    const jobs = (await (await own.api('/job')).json()) as JobJson[]
    const written = write.mock.calls.map(([piece]) => (piece as Buffer).byteLength)
    write.mockRestore()
    expect(jobs).toHaveLength(40)
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(40)
    // One extra row tells whether there are more.
    expect(asked.rows).toEqual(Array<number>(6).fill(8))
    // Other requests get a turn after each slice, and many turns after a millisecond of slices: a request may take ten.
    expect(Math.min(...asked.turnsBetween)).toBeGreaterThan(0)
    expect(Math.max(...asked.turnsBetween)).toBeGreaterThan(10)
    // The response is sent in equally small pieces.
    expect(Math.max(...written)).toBeLessThanOrEqual(64 * 1024)
    expect(written.length).toBe(14)
  })

  test('are built one at a time for each application', async () => {
    const { own, asked } = await startLarge(false)
    const answers = await Promise.all(Array.from({ length: 8 }, () => own.api('/job')))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(asked.most).toBe(1)
    const { key } = await own.addApplication('Other')
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    const real = own.engine.list.bind(own.engine)
    own.engine.list = async (page) => {
      if (page.app === own.app.id) await held
      return await real(page)
    }
    const waiting = own.api('/job')
    expect(await (await own.api('/job', { key })).json()).toEqual([])
    release()
    expect((await waiting).status).toBe(200)
  })

  test('count as one request more for each 64 KiB, and those that waited meanwhile are refused', async () => {
    const { own } = await startLarge({ requests: 20, perSeconds: 600 })
    const answers = await Promise.all(Array.from({ length: 4 }, () => own.api('/job')))
    // 660 KB cost ten more requests: after the first list six are left, after the second it owes four.
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(2)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(2)
    const refused = await own.api('/workflow')
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(100)
    const { key } = await own.addApplication('Other')
    expect((await own.api('/workflow', { key })).status).toBe(200)
  })
})
