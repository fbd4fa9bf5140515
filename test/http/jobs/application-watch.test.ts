import { EventEmitter } from 'node:events'
import { expect, test, vi } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { matcherOf } from '../../../src/core/engine/ports/job-query.js'
import type { JobPage } from '../../../src/core/engine/ports/job-store.js'
import { Shares } from '../../../src/core/engine/limits/shares.js'
import { ApplicationWatch } from '../../../src/http/application-watch.js'
import type { HttpEngine } from '../../../src/http/http-engine.js'

function watchOf(app: string) {
  const emitter = new EventEmitter()
  const engine = Object.assign(emitter, { list: async () => [], get: async () => undefined })
  const onClosed = vi.fn()
  const watch = new ApplicationWatch({
    engine: engine as unknown as HttpEngine,
    app,
    polls: new Shares({ total: 1 }),
    onClosed,
  })
  const changed = (id: string, progress = 0) =>
    emitter.emit('job.progressed', { job: { ...sampleJob(), id, app, status: 'STARTED', progress } })
  return { watch, changed, emitter, onClosed }
}

test('a follower that reads nothing gets the last state of each job, and is dropped beyond a thousand', async () => {
  const { watch, changed, emitter, onClosed } = watchOf('app')
  const stop = new AbortController()
  const follow = () => watch.follow({ signal: stop.signal, idleMs: 60_000, take: () => ({ release() {} }) })
  const [slow, quick] = [follow(), follow()]
  expect([await slow.next(), await quick.next()]).toEqual([
    { done: false, value: { kind: 'ready' } },
    { done: false, value: { kind: 'ready' } },
  ])
  for (let n = 1; n <= 5; n++) changed('job', n / 10)
  expect((await slow.next()).value).toMatchObject({ kind: 'job', job: { id: 'job', progress: 0.5 } })
  const first = (await quick.next()).value
  for (let n = 0; n <= 1000; n++) {
    changed(`job ${n}`)
    expect((await quick.next()).value).toMatchObject({ job: { id: `job ${n}` } })
  }
  expect(first).toMatchObject({ job: { progress: 0.5 } })
  expect(await slow.next()).toEqual({ done: true, value: undefined })
  expect(onClosed).not.toHaveBeenCalled()
  stop.abort()
  expect(await quick.next()).toEqual({ done: true, value: undefined })
  expect(onClosed).toHaveBeenCalledOnce()
  expect(emitter.eventNames()).toEqual([])
})

test('all followers of an application get the same object, and no state that they already know', async () => {
  const { watch, changed } = watchOf('app')
  const stop = new AbortController()
  const followers = [1, 2, 3].map(() =>
    watch.follow({ signal: stop.signal, idleMs: 60_000, take: () => ({ release() {} }) }),
  )
  for (const follower of followers) await follower.next()
  changed('job', 0.1)
  const seen = await Promise.all(followers.map((follower) => follower.next()))
  expect(new Set(seen.map(({ value }) => value)).size).toBe(1)
  changed('job', 0.1)
  changed('job', 0.2)
  expect((await followers[0]!.next()).value).toMatchObject({ job: { progress: 0.2 } })
  stop.abort()
})

test('followers that are far behind read the jobs from the store, each once for all of them', async () => {
  const { watch, changed, emitter } = watchOf('app')
  const stop = new AbortController()
  const followers = [1, 2, 3].map(() =>
    watch.follow({ signal: stop.signal, idleMs: 60_000, take: () => ({ release() {} }) }),
  )
  for (const follower of followers) await follower.next()
  const get = vi.fn(async (id: string) => ({ ...sampleJob(), id, app: 'app', progress: 0.9 }))
  Object.assign(emitter, { get })
  for (let n = 0; n < 150; n++) changed(`job ${n}`)
  for (let n = 0; n < 150; n++) {
    const seen = await Promise.all(followers.map((follower) => follower.next()))
    expect(new Set(seen.map(({ value }) => value)).size).toBe(1)
    expect(seen[0]?.value).toMatchObject({ kind: 'job', job: { id: `job ${n}`, progress: expect.any(Number) } })
  }
  // The last hundred jobs are kept.
  expect(get).toHaveBeenCalledTimes(50)
  stop.abort()
})

test('a change that is reported late, by an event or a poll, does not undo a later one', async () => {
  const { watch, emitter } = watchOf('app')
  const stop = new AbortController()
  const follower = watch.follow({ signal: stop.signal, idleMs: 60_000, take: () => ({ release() {} }) })
  await follower.next()
  const job = (id: string, status: string, token = 1) => ({ ...sampleJob(), id, app: 'app', status, token })
  emitter.emit('job.started', { job: job('begun', 'STARTED') })
  // A worker may claim a job before its creation has been reported.
  emitter.emit('job.created', { job: job('begun', 'QUEUED', 0) })
  expect((await follower.next()).value).toMatchObject({ job: { id: 'begun', status: 'STARTED' } })
  const asRead = ['begun', 'removed'].map((id) => job(id, 'STARTED'))
  const list = vi.fn(async () => {
    emitter.emit('job.succeeded', { job: job('begun', 'SUCCEEDED') })
    emitter.emit('job.deleted', { job: { ...asRead[1], deleted: true } })
    return asRead
  })
  Object.assign(emitter, { list })
  const seen = await Promise.all([follower.next(), follower.next()])
  expect(seen.map(({ value }) => value)).toMatchObject([{ job: { status: 'SUCCEEDED' } }, { kind: 'deleted' }])
  emitter.emit('job.requeued', { job: { ...job('begun', 'QUEUED'), retries: 1 } })
  expect((await follower.next()).value).toMatchObject({ job: { id: 'begun', status: 'QUEUED' } })
  stop.abort()
})

test('starts and ends of old jobs in other processes are found, however many jobs are newer', async () => {
  const { watch, emitter } = watchOf('app')
  const jobs = Array.from({ length: 120 }, (_, n) => ({
    ...sampleJob(),
    id: `job ${n}`,
    app: 'app',
    createdAt: 1000 - n,
  }))
  const list = async ({ limit, after, ...query }: JobPage) => {
    const first = jobs.findIndex(({ id }) => id === after?.id) + 1
    return jobs.slice(first).filter(matcherOf(query)).slice(0, limit)
  }
  Object.assign(emitter, { list, get: async (wanted: string) => jobs.find(({ id }) => id === wanted) })
  const stop = new AbortController()
  const follower = watch.follow({ signal: stop.signal, idleMs: 60_000, take: () => ({ release() {} }) })
  await follower.next()
  Object.assign(jobs[119]!, { status: 'STARTED', token: 1 })
  Object.assign(jobs[118]!, { status: 'SUCCEEDED', token: 1, completedAt: Date.now() })
  const seen = await Promise.all([follower.next(), follower.next()])
  expect(seen.map(({ value }) => value)).toMatchObject([
    { job: { id: 'job 119', status: 'STARTED' } },
    { job: { id: 'job 118', status: 'SUCCEEDED' } },
  ])
  stop.abort()
})
