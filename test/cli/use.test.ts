import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { cancel, sampleJob } from '../../src/contract/job-samples.js'
import { command } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

/** `stemwork usage`. */

const today = new Date().toISOString().slice(0, 10)
const data = temporaryFolder()
beforeAll(async () => {
  const { jobs, applications, close } = sqliteStores({ path: join(data, 'stemwork.db') })
  await applications.putApplication({ id: 'app-1', name: 'Tapes', createdAt: 0, webhook: null })
  for (const app of ['app-1', 'app-1', 'other']) {
    const { job } = await jobs.create(sampleJob({ app }))
    await jobs.apply(job.id, cancel())
  }
  close()
})

const usage = (...args: string[]) => command(['usage', '--data', data, ...args])

test('shows what each application has used, by its name where it has one', async () => {
  const { status, stdout } = await usage()
  expect([status, stdout]).toEqual([
    0,
    'Tapes: 2 jobs ended, 0 succeeded, 0 min of audio, 0 MB, 0 s of processor time\n' +
      'other: 1 job ended, 0 succeeded, 0 min of audio, 0 MB, 0 s of processor time\n',
  ])
  expect((await usage('--from', '2020-01-01', '--to', '2020-01-31')).stdout).toBe('Nothing was used on these days.\n')
})

test('prints CSV and JSON, by day and workflow, of one application', async () => {
  const { stdout } = await usage('--by', 'day,workflow', '--app', 'Tapes', '--csv')
  const names = 'day,workflow,jobs,succeeded,audioSeconds,bytes,processorSeconds'
  expect(stdout).toBe(`${names}\r\n${today},service/sample,2,0,0,0,0\r\n`)
  expect(JSON.parse((await usage('--json', '--by', 'day')).stdout)).toMatchObject([{ day: today, jobs: 3 }])
})

test.each([
  [['--by', 'hour'], '--by takes day, workflow, application, not "hour".'],
  [['--from', 'monday'], '--from must be a day such as '],
  [['--app', 'nobody'], 'There is no application nobody.'],
])('%o is refused', async (args, message) => {
  const { status, stderr } = await usage(...args)
  expect([status, stderr]).toEqual([2, expect.stringContaining(message)])
})
