import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../../../src/client/client.js'
import type { LedgerEntry } from '../../../src/core/engine/job/ledger.js'
import { dayMs } from '../../../src/core/engine/job/quota.js'
import { usageCsv } from '../../../src/http/service/usage-routes.js'
import { pollJob, type Service, serviceOfTest, startService } from '../harness.js'

/** The usage ledger: resources used by ended jobs, kept longer than the jobs. */

const stems = 'service/stems-vocals-accompaniment'
const today = new Date().toISOString().slice(0, 10)

let service: Service
const events: LedgerEntry[] = []
beforeAll(async () => {
  service = await startService({
    engine: { webhooks: { secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}` }, fetch: { allowPrivate: true } },
  })
  service.engine.on('usage.recorded', ({ entry }) => void events.push(entry))
})
afterAll(() => service.close())

async function run(bytes: Uint8Array, fields: object = {}, key?: string) {
  const params = { inputUrl: await service.uploaded(bytes) }
  return await pollJob(service, await service.created({ workflow: stems, params, ...fields }, { key }))
}

const usage = async (query = '', init: RequestInit & { key?: string } = {}) => service.api(`/usage${query}`, init)
const json = async (query = '') => (await (await usage(query)).json()) as { from: string; to: string; usage: object[] }

describe('GET /usage', () => {
  test('has nothing before the first end, then sums of the ends, which outlive their jobs', async () => {
    expect(await json()).toEqual({ from: `${today.slice(0, 8)}01`, to: today, usage: [] })
    const done = await run(Buffer.from('RIFF'))
    await run(Buffer.alloc(0))
    await service.api(`/job/${done.id}`, { method: 'DELETE' })
    const sums = { jobs: 2, succeeded: 1, audioSeconds: 0, bytes: 4, processorSeconds: 0 }
    expect((await json()).usage).toEqual([sums])
    expect((await json('?groupBy=day&groupBy=workflow')).usage).toEqual([{ day: today, workflow: stems, ...sums }])
    expect((await json('?groupBy=application,day')).usage).toEqual([
      { day: today, application: service.app.id, ...sums },
    ])
    expect((await json('?from=2020-01-01&to=2020-12-31')).usage).toEqual([])
  })

  test('is CSV for those who ask for it', async () => {
    const answer = await usage('?groupBy=day&format=csv')
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    const csv = `day,jobs,succeeded,audioSeconds,bytes,processorSeconds\r\n${today},2,1,0,4,0\r\n`
    expect(await answer.text()).toBe(csv)
    expect(await (await usage('?groupBy=day', { headers: { accept: 'text/csv' } })).text()).toBe(csv)
  })

  test('is returned by the client', async () => {
    const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
    const [total] = await client.usage()
    expect(total).toMatchObject({ jobs: 2, succeeded: 1, bytes: 4 })
    expect(await client.usage({ groupBy: ['day', 'workflow'] })).toEqual([{ day: today, workflow: stems, ...total }])
    expect(await client.usage({ from: '2020-01-01', to: '2020-12-31' })).toEqual([])
  })

  test('is only that of the application', async () => {
    const { key } = await service.addApplication('Stranger')
    expect(await (await usage('', { key })).json()).toMatchObject({ usage: [] })
  })

  test.each([
    ['?from=yesterday', 'from: must be a day that exists, such as 2026-11-24'],
    ['?to=2026-02-31x', 'to: must be a day that exists, such as 2026-11-24'],
    ['?from=1969-12-31', 'from: must not be before 1970-01-01.'],
    ['?from=2026-12-01&to=2026-11-01', 'to: must not be before from'],
    ['?to=2020-01-31', 'to: must not be before from, which is the first of this month unless given.'],
    ['?groupBy=hour', 'groupBy.0: must be one of day, workflow, application'],
  ])('%s is refused', async (query, message) => {
    const answer = await usage(query)
    expect([answer.status, await answer.json()]).toEqual([
      400,
      expect.objectContaining({ message: expect.stringContaining(message) }),
    ])
  })
})

test('CSV quotes what needs it, and a workflow that looks like a formula is escaped', () => {
  const sums = { jobs: 1, succeeded: 1, audioSeconds: 2.5, bytes: 3, processorSeconds: 0 }
  expect(usageCsv([{ workflow: '=a"b,c', ...sums }], ['workflow'])).toBe(
    'workflow,jobs,succeeded,audioSeconds,bytes,processorSeconds\r\n"\'=a""b,c",1,1,2.5,3,0\r\n',
  )
})

test('each end is an event, and a webhook message for those who ask for it, with the id of the entry', async () => {
  const messages: { type: string; data: { id: string; usage?: LedgerEntry } }[] = []
  const receiver = createServer((request, response) => {
    void text(request).then((body) => {
      messages.push(JSON.parse(body))
      response.end()
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => receiver.once('listening', resolve))
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  const { id } = await run(Buffer.from('RIFF'), { webhook: { url, events: ['usage.recorded', 'job.succeeded'] } })
  await expect.poll(() => messages.map(({ type }) => type).sort()).toEqual(['job.succeeded', 'usage.recorded'])
  const [stored] = (await service.engine.usageEntries({ from: 0, to: Date.now() })).slice(-1)
  expect(stored).toMatchObject({ id: `${id}/0`, jobId: id, model: 'none', bytes: 4, result: 'SUCCEEDED', priority: 0 })
  expect(messages.find(({ type }) => type === 'usage.recorded')?.data).toMatchObject({ id, usage: stored })
  expect(messages.find(({ type }) => type === 'job.succeeded')?.data).not.toHaveProperty('usage')
  expect(events.at(-1)).toEqual(stored)
  receiver.close()
})

test('sums have no error of additions', async () => {
  const { memoryJobs } = await import('../../../src/adapters/memory.js')
  const jobs = memoryJobs()
  const sums = { jobs: 2, succeeded: 2, audioSeconds: 0.1 + 0.2, bytes: 3, processorSeconds: 0.6600000000000081 }
  const ledger = { ...jobs.ledger!, totals: async () => [sums] }
  const { engine } = await serviceOfTest({ stores: { jobs: { ...jobs, ledger } }, worker: false })
  const totals = await engine.usageTotals({ from: 0, to: Date.now() })
  expect(totals).toEqual([{ ...sums, audioSeconds: 0.3, processorSeconds: 0.66 }])
})

test('the ledger is kept for as long as the option says, to the day', async () => {
  const now = Date.now()
  let time = now
  const { memoryJobs } = await import('../../../src/adapters/memory.js')
  const jobs = memoryJobs({ clock: () => time })
  const short = await serviceOfTest({ stores: { jobs }, worker: false, engine: { retention: { usageMs: 2 * dayMs } } })
  const { job } = await short.engine.submit({ app: 'a', workflow: 'service/held' })
  await short.engine.cancel(job.id)
  const ends = async () => (await short.engine.usageTotals({ from: 0, to: time }))[0]?.jobs ?? 0
  time = now + 2 * dayMs
  await jobs.ledger?.tidy({ keepFromDay: Math.floor((time - 2 * dayMs) / dayMs) })
  expect(await ends()).toBe(1)
  time = now + 3 * dayMs
  // The first sweep of an engine prunes the ledger.
  await short.engine.sweep()
  expect(await ends()).toBe(0)
})
