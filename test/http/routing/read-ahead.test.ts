import { expect, onTestFinished, test } from 'vitest'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import type { ApplicationStore } from '../../../src/core/engine/ports/application-store.js'
import { issueKey, revokeKey } from '../../../src/http/index.js'
import { serviceOfTest } from '../harness.js'

/** A service whose key look-ups wait while they are held, and the store calls made meanwhile. */
async function start() {
  const gate = { waiting: 0, open: Promise.resolve(), release: () => {} }
  const calls: string[] = []
  const stored = memoryApplications()
  const applications: ApplicationStore = {
    ...recording(stored, calls),
    async getKey(id) {
      gate.waiting++
      await gate.open
      return stored.getKey(id)
    },
  }
  const stores = { jobs: recording(memoryJobs(), calls), applications }
  const service = await serviceOfTest({ stores, blobs: recording(memoryBlobs(), calls), worker: false })
  const { key, record } = await issueKey(applications, service.app.id)
  const id = await service.created({}, { key })
  const { uploadUrl } = (await (await service.api('/upload', { key })).json()) as { uploadUrl: string }
  onTestFinished(() => gate.release())
  const request = {
    status: () => service.api(`/job/${id}/status`, { key }),
    job: () => service.api(`/job/${id}`, { key }),
    'job that never was': () => service.api('/job/none', { key }),
    'job that is waited for': () => service.api(`/job/${id}`, { key, headers: { prefer: 'wait=30' } }),
    list: () => service.api('/job?size=20', { key }),
    submission: () => service.submit({}, { key }),
    upload: () => fetch(uploadUrl, { method: 'PUT', body: 'song' }),
  }
  const hold = () => {
    gate.waiting = 0
    gate.open = new Promise((resolve) => (gate.release = resolve))
    calls.length = 0
  }
  const end = () => revokeKey({ ...applications, getKey: (keyId) => stored.getKey(keyId) }, record.id)
  return { service, gate, calls, request, hold, end }
}

function recording<Store extends object>(store: Store, calls: string[]): Store {
  const recorded = (name: string, method: unknown) =>
    typeof method !== 'function'
      ? method
      : (...args: unknown[]) => {
          calls.push(name)
          return (method as (...all: unknown[]) => unknown).apply(store, args)
        }
  return Object.fromEntries(Object.entries(store).map(([name, method]) => [name, recorded(name, method)])) as Store
}

const reads = [
  { what: 'status', call: 'get' },
  { what: 'job', call: 'get' },
  { what: 'list', call: 'list' },
  { what: 'submission', call: 'getApplication' },
  { what: 'upload', call: 'put' },
] as const

for (const { what, call } of reads)
  test(`a ${what} begins while the key is looked up, which takes one wait for the store less`, async () => {
    const { gate, calls, request, hold } = await start()
    hold()
    const asked = request[what]()
    await expect.poll(() => [gate.waiting, calls.includes(call)]).toEqual([1, true])
    expect(calls).not.toContain('create')
    gate.release()
    expect((await asked).status).toBe(200)
  })

for (const what of ['status', 'job', 'job that never was', 'job that is waited for', 'list', 'submission'] as const)
  test(`a ${what} is refused if the key has ended since it last worked, and nothing is changed`, async () => {
    const { gate, calls, request, hold, end, service } = await start()
    hold()
    const asked = request[what]()
    await expect.poll(() => gate.waiting).toBe(1)
    await end()
    gate.release()
    const refused = await asked
    expect([refused.status, await refused.json()]).toEqual([401, expect.objectContaining({ code: 'UNAUTHORIZED' })])
    expect(calls).not.toContain('create')
    expect(await service.engine.count({ app: service.app.id })).toBe(1)
  })

test('an upload is refused if the key of its ticket has ended, and nothing is kept', async () => {
  const { gate, request, hold, end, service } = await start()
  hold()
  const asked = request.upload()
  await expect.poll(() => gate.waiting).toBe(1)
  await end()
  gate.release()
  expect((await asked).status).toBe(403)
  const kept = []
  for await (const { key } of service.engine.blobs.list('uploads/')) kept.push(key)
  expect(kept).toEqual([])
})
