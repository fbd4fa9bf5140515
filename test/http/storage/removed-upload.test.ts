import { expect, test } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { pollJob, separated, serviceOfTest } from '../harness.js'
import { stemsId } from '../light-workflows.js'

/**
 * A service with an upload of one ended job. Once `during` is set, it runs before the next such step, and that step
 * waits for it.
 *
 * @param step `create` a job, or `put` or `delete` a file of the upload
 */
async function startedWith(step: 'create' | 'put' | 'delete') {
  let during: (() => Promise<void>) | undefined
  const pause = async (now: typeof step) => {
    if (now !== step) return
    const work = during
    during = undefined
    await work?.()
  }
  const [blobs, jobs] = [memoryBlobs(), memoryJobs()]
  const service = await serviceOfTest({
    blobs: {
      ...blobs,
      put: (...given) =>
        (given[0].endsWith('.used') ? pause('put') : Promise.resolve()).then(() => blobs.put(...given)),
      delete: (...given) => pause('delete').then(() => blobs.delete(...given)),
    },
    stores: { jobs: { ...jobs, create: (...given) => pause('create').then(() => jobs.create(...given)) } },
  })
  const inputUrl = await service.uploaded(new Uint8Array(100))
  const { id } = await separated(service, inputUrl)
  return {
    service,
    remove: async () => expect((await service.api(`/job/${id}`, { method: 'DELETE' })).status).toBe(200),
    create: () => service.submit({ workflow: stemsId, params: { inputUrl } }),
    interrupt: (work: () => Promise<void>) => void (during = work),
  }
}

type Started = Awaited<ReturnType<typeof startedWith>>

/** Requires that the answer refuses the job, and that no job is left. */
async function requireRefused({ service }: Started, answer: Response): Promise<void> {
  expect([answer.status, await answer.json()]).toMatchObject([422, { reason: 'upload_missing' }])
  expect(await service.engine.count({})).toBe(0)
}

test('a job is refused whose upload is removed with another before it is stored', async () => {
  const started = await startedWith('create')
  started.interrupt(started.remove)
  await requireRefused(started, await started.create())
})

test('a job is refused that is stored when its upload is about to be removed with another', async () => {
  const started = await startedWith('delete')
  let answer: Response | undefined
  started.interrupt(async () => void (answer = await started.create()))
  await started.remove()
  await requireRefused(started, answer as Response)
})

test('a job keeps its upload that is stored before the removal with another is announced', async () => {
  const { service, remove, create, interrupt } = await startedWith('put')
  let id = ''
  interrupt(async () => void ({ id } = (await (await create()).json()) as { id: string }))
  await remove()
  expect(await pollJob(service, id)).toMatchObject({ status: 'SUCCEEDED' })
  expect((await create()).status).toBe(200)
})

test('a job is accepted whose blob store fails right after it was stored', async () => {
  const blobs = memoryBlobs()
  const jobs = memoryJobs()
  let failures = 0
  const service = await serviceOfTest({
    blobs: {
      ...blobs,
      async stat(...given) {
        if (failures-- > 0) throw new Error('unreachable')
        return blobs.stat(...given)
      },
    },
    stores: { jobs: { ...jobs, create: (...given) => jobs.create(...given).finally(() => (failures = 1)) } },
  })
  const { id } = await separated(service, await service.uploaded(new Uint8Array(100)))
  expect(await pollJob(service, id)).toMatchObject({ status: 'SUCCEEDED' })
})
