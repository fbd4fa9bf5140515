import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { createEngine, type EngineSettings, silentLogger } from '../../src/index.js'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import { textWorkflow } from '../engine/harness.js'
import { command, stemwork } from './stemwork.js'
import { folderOfEachTest } from '../temporary-folder.js'

const app = 'app-1'
const data = folderOfEachTest()

/** Does work with a host's engine on the data folder. */
async function withHost(settings: EngineSettings, work: (engine: ReturnType<typeof createEngine>) => Promise<void>) {
  const { jobs, applications, close } = sqliteStores({ path: join(data, 'stemwork.db') })
  const blobs = fsBlobs({ directory: join(data, 'blobs') })
  const workflow = textWorkflow()
  const engine = createEngine({ jobs, applications, blobs, workflows: [workflow], logger: silentLogger, ...settings })
  if (!(await applications.getApplication(app)))
    await applications.putApplication({ id: app, name: 'Tapes', createdAt: 0, webhook: null })
  try {
    await work(engine)
  } finally {
    await engine.close()
    close()
  }
}

const submit = (engine: ReturnType<typeof createEngine>) => engine.submit({ app, workflow: textWorkflow().id })

test('a retry keeps to the limits of the deployment, which the command itself does not know', async () => {
  let id = ''
  await withHost({ limits: { maxQueuedJobs: 1 }, quota: { jobs: 3 } }, async (engine) => {
    id = (await submit(engine)).job.id
    await engine.cancel(id)
    await submit(engine)
  })
  const retry = () => command(['jobs', 'retry', id, '--data', data])
  expect(await retry()).toMatchObject({ status: 1, stderr: expect.stringContaining('may wait: the limit is 1.') })
  expect((await command(['jobs', 'cancel', '--all', '--data', data])).status).toBe(0)
  expect((await retry()).status).toBe(0)
  expect((await command(['jobs', 'cancel', id, '--data', data])).status).toBe(0)
  expect(await retry()).toMatchObject({ status: 1, stderr: expect.stringContaining('may use 3 jobs a day') })
})

test('the limits of an application are set, shown with its usage, and removed', async () => {
  await withHost(
    { limits: { maxQueuedJobs: 20 }, quota: { audioMinutes: 60 } },
    async (engine) => void (await submit(engine)),
  )
  const limits = (...words: string[]) => command(['limits', ...words, '--data', data])
  const first = ['set', '--app', 'Tapes', '--jobs', '2', '--max-queued', '5']
  expect(await stemwork(['limits', ...first, '--data', data])).toMatchObject({
    status: 0,
    stdout: [
      'Tapes',
      '  max-queued     5',
      '  jobs           2, used today: 1',
      '  audio-minutes  60 (as for all), used today: 0',
      '  bytes          no limit',
      '',
    ].join('\n'),
  })
  await withHost({}, async (engine) => {
    await submit(engine)
    await expect(submit(engine)).rejects.toMatchObject({ details: { quota: 'jobs', limit: 2, used: 2 } })
  })
  await limits('set', '--app', 'Tapes', '--jobs', 'default', '--bytes', '0')
  expect(JSON.parse((await limits('show', '--json')).stdout)).toEqual([
    {
      app,
      name: 'Tapes',
      own: { maxQueuedJobs: 5, bytes: 0 },
      // The last host had only the default limits.
      effective: { maxQueuedJobs: 5, bytes: 0 },
      used: { jobs: 2, audioSeconds: 0, bytes: 0 },
      revision: expect.stringMatching(/^[0-9a-f]{16}$/),
    },
  ])
  const [{ revision }] = JSON.parse((await limits('show', '--json')).stdout)
  expect(await limits('set', '--app', 'Tapes', '--jobs', '7', '--revision', revision)).toMatchObject({ status: 0 })
  expect(await limits('set', '--app', 'Tapes', '--jobs', '8', '--revision', revision)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Somebody else has changed these limits.'),
  })
})

test.each([
  ['another action', ['stop'], 'Expected one of: show, set'],
  ['set without a figure', ['set', '--app', 'Tapes'], 'needs at least one of'],
  ['set without an application', ['set', '--jobs', '1'], 'needs --app'],
  ['show with a figure', ['show', '--jobs', '1'], '--jobs belongs to set, not to show'],
  [
    'what is no number',
    ['set', '--app', 'Tapes', '--jobs', 'many'],
    'must be "default" or a whole number, 0 or more, not "many"',
  ],
  [
    'no job at all',
    ['set', '--app', 'Tapes', '--max-queued', '0'],
    'must be "default" or a whole number, 1 or more, not "0"',
  ],
  ['an unknown application', ['set', '--app', 'nobody', '--jobs', '1'], 'There is no application nobody'],
])('%s is refused', async (_, words, message) => {
  expect(await command(['limits', ...words, '--data', data])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining(message),
  })
})
