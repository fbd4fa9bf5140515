import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { fail, sampleError, sampleJob } from '../../src/contract/job-samples.js'
import { errorText } from '../../src/core/engine/job/error-text.js'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { createApplication } from '../../src/http/index.js'
import { command, stemwork } from './stemwork.js'
import { folderOfEachTest } from '../temporary-folder.js'

const data = folderOfEachTest()
let id: string

beforeEach(async () => {
  const { jobs, close } = sqliteStores({ path: join(data, 'stemwork.db') })
  id = (await jobs.create(sampleJob())).job.id
  const claimed = await jobs.claim({ id, owner: 'worker-1', leaseMs: 60_000 })
  await jobs.apply(id, fail(claimed!.token, { failure: 'Error: the disk is full\n    at here' }))
  close()
})

test('a job is shown as clients see it, and with --why also the cause of its failure', async () => {
  const shown = await stemwork(['jobs', 'show', id, '--data', data])
  expect(shown).toMatchObject({ status: 0, stderr: '' })
  expect(shown.stdout).toContain('FAILED')
  expect(shown.stdout).not.toContain('the disk is full')
  expect(shown.stdout).toMatch(/attempt 1 .* worker-1 {2}failed\n/)
  const why = await command(['jobs', 'show', id, '--data', data, '--why'])
  expect(why.stdout).toContain('why\n  Error: the disk is full\n      at here\n')
  const json = await command(['jobs', 'show', id, '--data', data, '--why', '--json'])
  expect(JSON.parse(json.stdout)).toMatchObject({
    id,
    status: 'FAILED',
    attempts: 1,
    why: 'Error: the disk is full\n    at here',
  })
})

test('what is in the data folder and not of a service stays there', async () => {
  const scratch = join(data, 'scratch')
  await mkdir(join(scratch, 'stemwork-scratch.killed.1.2.x'), { recursive: true })
  await writeFile(join(scratch, 'notes.txt'), '')
  expect(await command(['jobs', 'list', '--data', data])).toMatchObject({ status: 0 })
  expect(await readdir(scratch)).toEqual(['notes.txt'])
})

test('jobs of all applications are listed, found by text, and canceled', async () => {
  const { jobs, close } = sqliteStores({ path: join(data, 'stemwork.db') })
  const waiting = (await jobs.create({ ...sampleJob(), app: 'other', name: 'Harbour Lights' })).job.id
  close()
  const all = await command(['jobs', 'list', '--data', data])
  expect(all.stdout.split('\n').map((line) => line.split(/ +/, 1)[0])).toEqual([waiting, id, ''])
  const list = async (...words: string[]) => {
    const { stdout } = await command(['jobs', 'list', '--data', data, '--json', ...words])
    return (JSON.parse(stdout) as { jobs: { id: string }[] }).jobs.map((job) => job.id)
  }
  expect(await list('--status', 'queued')).toEqual([waiting])
  expect(await list('--search', 'harbour')).toEqual([waiting])
  expect(await list('--error', 'disk is full')).toEqual([id])

  const canceled = await command(['jobs', 'cancel', waiting, '--data', data])
  expect(canceled).toMatchObject({ status: 0, stdout: expect.stringMatching(/status +FAILED[\s\S]*CANCELED/) })
  expect(await list('--status', 'queued')).toEqual([])
})

test('neither a name nor an error commands the terminal, or imitates a line', async () => {
  const { jobs, close } = sqliteStores({ path: join(data, 'stemwork.db') })
  const [clear, csi] = ['\u001B]0;owned\u0007\u001B[2J', '\u009B31m']
  const job = (await jobs.create(sampleJob({ name: `${clear}\n${id}  SUCCEEDED${csi}` }))).job
  const claimed = await jobs.claim({ id: job.id, owner: 'worker-1', leaseMs: 60_000 })
  const failure = errorText(new Error(`ffmpeg: title: ${clear}${csi}`, { cause: new Error('two\nlines') }))
  await jobs.apply(job.id, fail(claimed!.token, { failure, error: { ...sampleError, message: csi } }))
  close()
  const list = await command(['jobs', 'list', '--data', data])
  const shown = await command(['jobs', 'show', job.id, '--data', data, '--why'])
  expect(list.stdout.split('\n')).toHaveLength(3)
  expect(shown.stdout).toContain('title:')
  // oxlint-disable-next-line no-control-regex -- they are what must not be there
  for (const { stdout } of [list, shown]) expect(stdout).not.toMatch(/[^\P{Cc}\n]/u)
})

test('beside a running service, the commands and the doctor say where to look instead', async () => {
  const { close } = sqliteStores({ path: join(data, 'stemwork.db') })
  const remedy = /If a service runs with it, use its operator page instead \(.*\/v1\/operator/
  const list = await command(['jobs', 'list', '--data', data])
  expect(list).toMatchObject({ status: 1, stderr: expect.stringMatching(remedy) })
  const doctor = await command(['doctor', '--api-only', '--json', '--data', data])
  const { findings } = JSON.parse(doctor.stdout) as { findings: unknown[] }
  expect(findings).toContainEqual(
    expect.objectContaining({ check: 'storage', status: 'problem', todo: expect.stringMatching(remedy) }),
  )
  close()
})

test('a job is shown with its name, that of its application, and an attempt that lost its worker', async () => {
  const { jobs, applications, close } = sqliteStores({ path: join(data, 'stemwork.db') })
  const app = await createApplication(applications, { name: 'Tapes' })
  const job = (await jobs.create({ ...sampleJob(), app: app.id, name: 'Harbour Lights' })).job
  await jobs.claim({ id: job.id, owner: 'worker-1', leaseMs: 1 })
  await expect.poll(() => jobs.claim({ id: job.id, owner: 'worker-2', leaseMs: 60_000 })).toBeDefined()
  close()
  const { stdout } = await command(['jobs', 'show', job.id, '--data', data])
  expect(stdout).toMatch(/^name +Harbour Lights$/m)
  expect(stdout).toMatch(/^application +Tapes$/m)
  expect(stdout).toMatch(/^attempt 1 .* worker-1 {2}worker lost$/m)
})

test('an empty answer is told in words', async () => {
  expect((await command(['jobs', 'list', '--status', 'queued', '--data', data])).stdout).toBe('No jobs.\n')
  expect((await command(['workers', 'show', '--data', data])).stdout).toBe('No workers.\n')
})

test('an unknown job, another action and a missing store are named', async () => {
  expect(await command(['jobs', 'show', 'nothing', '--data', data])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('There is no job nothing'),
  })
  expect(await command(['jobs', 'kill', id, '--data', data])).toMatchObject({ status: 2 })
  expect(await command(['jobs', 'list', '--data', data, '--status', 'LOST'])).toMatchObject({ status: 2 })
  expect(await command(['jobs', 'show', id])).toMatchObject({ status: 2, stderr: expect.stringContaining('--data') })
})

test.each(['jobs delete --all', 'keys list', 'schedule pause', 'limits show', 'usage', 'workers show'])(
  'a data folder that is not there is not made by %s',
  async (words) => {
    const missing = join(data, 'mistyped')
    expect(await command([...words.split(' '), '--data', missing])).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining(`There is no folder "${missing}". Check --data`),
    })
    expect(await readdir(data)).not.toContain('mistyped')
  },
)

describe('retry and delete', () => {
  test('one job is queued again, and deleted', async () => {
    const retried = await command(['jobs', 'retry', id, '--data', data])
    expect(retried).toMatchObject({ status: 0, stdout: expect.stringMatching(/status +QUEUED/) })
    expect(await command(['jobs', 'retry', id, '--data', data])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('FAILED'),
    })
    expect(await command(['jobs', 'delete', id, '--data', data])).toMatchObject({
      status: 0,
      stdout: `deleted ${id}\n`,
    })
    expect((await command(['jobs', 'delete', id, '--data', data])).status).toBe(1)
  })

  test('all that match are canceled, queued again and deleted, page after page', async () => {
    const { jobs, close } = sqliteStores({ path: join(data, 'stemwork.db') })
    for (let n = 0; n < 120; n++) await jobs.create({ ...sampleJob(), workflow: 'service/many' })
    const other = (await jobs.create({ ...sampleJob(), workflow: 'service/other' })).job.id
    close()
    const bulk = async (...words: string[]) => {
      const { status, stdout } = await command(['jobs', ...words, '--all', '--data', data])
      return [status, stdout]
    }
    const many = ['--workflow', 'service/many']
    expect(await bulk('cancel', ...many)).toEqual([0, '120 jobs canceled, 0 refused\n'])
    expect(await bulk('retry', ...many, '--status', 'failed')).toEqual([0, '120 jobs queued again, 0 refused\n'])
    expect(await bulk('delete', ...many, '--status', 'queued')).toEqual([0, '120 jobs deleted, 0 refused\n'])
    const after = sqliteStores({ path: join(data, 'stemwork.db') })
    expect((await after.jobs.list({ limit: 10 })).map((job) => job.id)).toEqual([other, id])
    after.close()
  })

  test('jobs for which there is no room are reported and left for later', async () => {
    const { jobs, close } = sqliteStores({ path: join(data, 'stemwork.db') })
    const { workflow } = (await jobs.get(id))!
    await jobs.changeRule({ kind: 'workflow', id: workflow }, { state: 'draining' })
    close()
    const { status, stdout, stderr } = await command(['jobs', 'retry', '--all', '--data', data])
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/^0 jobs queued again, 1 refused\n {2}1 DRAINING: .*\n$/),
    ])
    expect(stderr).toContain('Run the command again later')
  })

  test.each([
    ['neither an id nor --all', ['cancel', '--status', 'QUEUED'], 'needs a job id, or --all'],
    ['an id and --all', ['delete', 'some-id', '--all'], 'not both'],
    ['a filter beside an id', ['retry', 'some-id', '--app', 'one'], 'belongs to --all'],
    ['--all with list', ['list', '--all'], 'belongs to cancel, retry, delete'],
    ['a filter of another action', ['delete', '--all', '--error', '404'], '--error belongs to list, not to delete'],
    ['an unknown status', ['cancel', '--all', '--status', 'LOST'], 'must be one of QUEUED'],
    ['an unknown application', ['cancel', '--all', '--app', 'nobody'], 'There is no application nobody'],
  ])('%s changes nothing', async (_, words, message) => {
    expect(await command(['jobs', ...words, '--data', data])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(message),
    })
  })

  test('a shared store is refused without the blob store of its jobs', async () => {
    expect(await command(['jobs', 'delete', id, '--store', `sqlite:${join(data, 'stemwork.db')}`])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--blobs'),
    })
  })
})
