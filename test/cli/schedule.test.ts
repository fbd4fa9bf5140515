import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import { command, stemwork } from './stemwork.js'
import { folderOfEachTest } from '../temporary-folder.js'

const data = folderOfEachTest()

test('rules are set, shown and ended', async () => {
  const schedule = (...words: string[]) => command(['schedule', ...words, '--data', data])
  expect(await stemwork(['schedule', 'pause', '--data', data])).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^deployment +paused\n$/),
  })
  await schedule('limit', '--workflow', 'service/stems', '--max', '3')
  expect(JSON.parse((await schedule('show', '--json')).stdout)).toEqual(
    expect.arrayContaining([
      { target: { kind: 'deployment' }, state: 'paused', maxRunning: null },
      { target: { kind: 'workflow', id: 'service/stems' }, state: 'open', maxRunning: 3 },
    ]),
  )
  await schedule('limit', '--app', '*', '--max', '2')
  expect((await schedule('show')).stdout).toMatch(/^application \* +open, at most 2 at a time$/m)
  expect((await schedule('pause', '--app', '*')).status).not.toBe(0)
  await schedule('limit', '--app', '*')
  await schedule('resume')
  expect((await schedule('limit', '--workflow', 'service/stems')).stdout).toBe(
    'Nothing is paused, drained or limited.\n',
  )
})

test('a rule for a workflow that nobody has is warned of, with those that are known', async () => {
  const schedule = (...words: string[]) => command(['schedule', ...words, '--data', data])
  const unknown = ['--workflow', 'service/louddness']
  expect(await schedule('limit', ...unknown, '--max', '3')).toMatchObject({
    status: 0,
    stderr: expect.stringMatching(
      /no worker and no job has a workflow service\/louddness\. Known: .*service\/loudness,/,
    ),
  })
  expect((await schedule('limit', ...unknown)).stderr).toBe('')
  expect((await schedule('limit', '--workflow', 'service/loudness', '--max', '3')).stderr).toBe('')
  const { jobs, close } = sqliteStores({ path: join(data, 'stemwork.db') })
  await jobs.create(sampleJob({ workflow: 'service/louddness' }))
  close()
  expect((await schedule('limit', ...unknown, '--max', '3')).stderr).toBe('')
})

test('a missing target is named in the error', async () => {
  expect(await command(['schedule', 'stop', '--data', data])).toMatchObject({ status: 2 })
  expect(await command(['schedule', 'pause', '--app', 'nobody', '--data', data])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('no application nobody'),
  })
})
