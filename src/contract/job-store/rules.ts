import assert from 'node:assert/strict'
import type { JobRecord } from '../../core/engine/job/job.js'
import { assertNone } from '../broken-promise.js'
import { accepted, creator, fail, names, requeue, sampleJob, succeed, worker } from '../job-samples.js'
import { type JobStoreContext, leaseMs } from '../job-store-context.js'
import type { Cases } from '../suite.js'

const deployment = { kind: 'deployment' } as const
const workflow = (id: string) => ({ kind: 'workflow', id }) as const
const application = (id: string) => ({ kind: 'application', id }) as const

export const rulesCases = {
  async 'a rule is stored, can be changed in part, and disappears when it equals the default'({ store }) {
    assert.deepEqual(await store.rules(), [], 'A new store has no rules.')
    await store.changeRule(workflow('w/a'), { state: 'paused' })
    await store.changeRule(workflow('w/a'), { maxRunning: 3 })
    await store.changeRule(deployment, { state: 'draining' })
    assert.deepEqual(
      new Set(await store.rules()),
      new Set([
        { target: workflow('w/a'), state: 'paused', maxRunning: 3 },
        { target: deployment, state: 'draining', maxRunning: null },
      ]),
      'Changing one field of a rule leaves the other fields.',
    )
    await store.changeRule(deployment, { state: 'open' })
    await store.changeRule(workflow('w/a'), { maxRunning: null })
    assert.deepEqual(
      await store.rules(),
      [{ target: workflow('w/a'), state: 'paused', maxRunning: null }],
      'A rule that equals the default disappears, and the others stay.',
    )
    await store.changeRule(workflow('w/a'), { state: 'open' })
    assert.deepEqual(await store.rules(), [], 'No rule is left.')
  },

  async 'paused jobs, even lapsed ones, are not claimed until resumed; draining ones are claimed'({ store, advance }) {
    const create = creator(store, advance)
    const held = await create('lapsed', { app: 'a', workflow: 'w/a' })
    await store.claim({ owner: 'w', leaseMs, id: held })
    await create('a2', { app: 'a', workflow: 'w/b' })
    const b1 = await create('b1', { app: 'b', workflow: 'w/a' })
    await advance(leaseMs + 100)
    await store.changeRule(application('a'), { state: 'paused' })
    await store.changeRule(workflow('w/a'), { state: 'paused' })
    assert.deepEqual(
      await names(store),
      [],
      'Nothing is claimed of a paused application or workflow, not even a lapsed job.',
    )
    assertNone(await store.claim({ ...worker, id: b1 }), 'A named job of a paused workflow is not granted.')
    await store.changeRule(workflow('w/a'), { state: 'open' })
    assert.deepEqual(await names(store), ['b1'], 'Jobs of the resumed workflow are claimed, the paused ones are not.')
    await store.changeRule(application('a'), { state: 'draining' })
    await store.changeRule(deployment, { state: 'paused' })
    assert.deepEqual(await names(store), [], 'Nothing is claimed in a paused deployment.')
    await store.changeRule(workflow('w/b'), { maxRunning: 5 })
    assert.deepEqual(await names(store), [], 'Nor is it where a limit of running jobs is not reached.')
    await store.changeRule(deployment, { state: 'open' })
    assert.deepEqual(await names(store), ['lapsed', 'a2'], 'Jobs of a draining application are claimed, lapsed first.')
  },

  async 'simultaneous claims never exceed maxRunning of an application, a workflow or the deployment'({ store }) {
    for (let n = 0; n < 30; n++)
      await store.create(sampleJob({ app: `app-${n % 3}`, workflow: n % 2 ? 'w/odd' : 'w/even' }))
    const claimMany = () => accepted(16, () => store.claim(worker))
    await store.changeRule(application('app-0'), { maxRunning: 2 })
    await store.changeRule(workflow('w/odd'), { maxRunning: 3 })
    const first = await claimMany()
    // Two of app-0, three of w/odd, and all ten even jobs of the other applications.
    assert.ok(first.filter(({ app }) => app === 'app-0').length <= 2, 'At most maxRunning jobs of an application run.')
    assert.equal(
      first.filter((job) => job.workflow === 'w/odd').length,
      3,
      'Exactly maxRunning jobs of a workflow run, if enough are waiting.',
    )
    await claimMany()
    assert.equal(
      await store.count({ app: 'app-0', statuses: ['STARTED'] }),
      2,
      'Further claims bring the application to its maxRunning and not beyond.',
    )
    assert.equal(
      await store.count({ workflows: ['w/odd'], statuses: ['STARTED'] }),
      3,
      'Further claims leave the workflow at its maxRunning.',
    )
    assertNone(await store.claim(worker), 'No job is granted that a rule holds back.')
    const [queued] = await store.list({ app: 'app-1', workflows: ['w/odd'], statuses: ['QUEUED'], limit: 1 })
    assertNone(await store.claim({ ...worker, id: queued?.id }), 'A named job that a rule holds back is not granted.')
    // Each way of ending makes room for one.
    const odd = first.filter((job) => job.workflow === 'w/odd' && job.app !== 'app-0')
    const [ended, failed] = odd
    if (ended) await store.apply(ended.id, succeed(ended))
    if (failed) await store.apply(failed.id, fail(failed.token))
    assert.equal((await claimMany()).length, Math.min(odd.length, 2), 'Each job that ends makes room for one.')
    await store.changeRule(deployment, { maxRunning: await store.count({ statuses: ['STARTED'] }) })
    await store.changeRule(workflow('w/odd'), { maxRunning: null })
    assertNone(await store.claim(worker), 'No job is granted beyond maxRunning of the deployment.')
    const [running] = await store.list({ statuses: ['STARTED'], app: 'app-1', limit: 1 })
    assert.ok(running, 'A job of app-1 is running.')
    await store.apply(running.id, requeue(running.token))
    assert.equal((await claimMany()).length, 1, 'A requeued job makes room for one.')
  },

  async 'a limit for every application applies to each one that has no limit of its own'({ store }) {
    for (let n = 0; n < 12; n++) await store.create(sampleJob({ app: `app-${n % 3}` }))
    await store.changeRule(application('*'), { maxRunning: 2 })
    await store.changeRule(application('app-0'), { maxRunning: 3 })
    const claimed: JobRecord[] = []
    for (let job; (job = await store.claim(worker));) claimed.push(job)
    const running = (app: string) => claimed.filter((job) => job.app === app).length
    assert.deepEqual(
      ['app-0', 'app-1', 'app-2'].map(running),
      [3, 2, 2],
      'An application runs as many jobs as its own limit allows or, without one, the limit for every application.',
    )
    const [queued] = await store.list({ app: 'app-1', statuses: ['QUEUED'], limit: 1 })
    assertNone(await store.claim({ ...worker, id: queued?.id }), 'Named jobs are limited, too.')
    const ended = claimed.find(({ app }) => app === 'app-2')
    if (ended) await store.apply(ended.id, succeed(ended))
    assert.equal((await store.claim(worker))?.app, 'app-2', 'A job that ends makes room for one of its application.')
    await store.changeRule(application('*'), { maxRunning: null })
    assert.equal((await store.claimSeveral?.(worker, { max: 9 }))?.length ?? 3, 3, 'Without a limit, all may run.')
  },
} satisfies Cases<JobStoreContext>
