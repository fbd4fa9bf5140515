import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import Database from 'libsql'
import { describe, expect, test } from 'vitest'
import { fullJob, sampleJob, sampleOutputs, succeed } from '../../../src/contract/job-samples.js'
import { countUnfilledSql } from '../../../src/adapters/stores/sqlite/fill-search.js'
import { migrations } from '../../../src/adapters/stores/sqlite/schema.js'
import { sqliteStores } from '../../../src/adapters/stores/sqlite/index.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import type { JobQuery } from '../../../src/core/engine/ports/job-store.js'
import { countSql, listSql } from '../../../src/adapters/stores/sqlite/job-query.js'
import { testEngine, textWorkflow } from '../../engine/harness.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const directory = folderOfEachTest()
const path = join(directory, 'below', 'jobs.db')

describe('a SQLite file', () => {
  test('that cannot be made says what is in its way and what to do', async () => {
    await writeFile(join(directory, 'file'), '')
    const open = async (at: string) => sqliteStores({ path: at }).jobs.count({})
    for (const at of [join(directory, 'file', 'jobs.db'), join(directory, 'file', 'below', 'jobs.db')])
      await expect(open(at)).rejects.toThrow('a file is where its folder should be. Name another path.')
    await expect(open(directory)).rejects.toThrow('is a folder. Name a file.')
  })

  test('of an earlier schema is brought up to date in little memory, however large it is', async () => {
    await mkdir(dirname(path), { recursive: true })
    const database = new Database(path)
    database.exec(`${migrations.slice(0, 12).join(';')}; PRAGMA user_version = 12`)
    const add = database.prepare(
      `INSERT INTO jobs (id, app, created_at, status, workflow, deleted, record)
      VALUES (?, 'a', 1, 'FAILED', 'w', 0, ?)`,
    )
    database.exec('BEGIN')
    for (let id = 0; id < 20_000; id++) add.run([`${id}`, `{"padding":"${'x'.repeat(4000)}"}`])
    database.exec('COMMIT')
    database.close()
    const { size } = await stat(path)
    const before = process.memoryUsage().rss
    const { jobs, close } = sqliteStores({ path, logger: silentLogger })
    expect(await jobs.recordBytes('a')).toBeGreaterThan(size / 2)
    expect(process.memoryUsage().rss - before).toBeLessThan(size / 2)
    close()
    expect(await readdir(dirname(path))).toEqual(['jobs.db'])
  })

  test('keeps jobs and applications from one opening to the next', async () => {
    const first = sqliteStores({ path })
    const { job } = await first.jobs.create(fullJob())
    const running = await first.jobs.claim({ id: job.id, owner: 'w', leaseMs: 1000 })
    if (!running) return expect.unreachable()
    const done = await first.jobs.apply(job.id, succeed(running))
    const application = { id: 'app-1', name: 'One', createdAt: 1, webhook: null }
    await first.applications.putApplication(application)
    first.close()

    const second = sqliteStores({ path, openTimeoutMs: 0 })
    expect(await second.jobs.get(job.id)).toEqual(done)
    expect(await second.jobs.count({ uploadKey: 'uploads/app-1/ticket-2' })).toBe(1)
    expect(await second.applications.getApplication('app-1')).toEqual(application)
    second.close()
  })

  test('of the first schema is brought up to date, and its waiting and lapsed jobs are claimed', async () => {
    await mkdir(dirname(path))
    const database = new Database(path)
    database.exec(`${migrations[0]}; PRAGMA user_version = 1`)
    const insert = database.prepare(
      'INSERT INTO jobs (id, app, created_at, status, workflow, deleted, claimable_at, record) VALUES (?, ?, 1, ?, ' +
        "'w', 0, ?, ?)",
    )
    for (const [id, app, status, at] of [
      ['late', 'a', 'QUEUED', 3],
      ['early', 'b', 'QUEUED', 2],
      ['lapsed', 'c', 'STARTED', 4],
    ]) {
      const lease = status === 'STARTED' ? { owner: 'dead', token: 1, until: 4 } : null
      insert.run([id, app, status, at, JSON.stringify({ ...sampleJob({ createdAt: 1 }), id, app, status, lease })])
    }
    const [output] = Object.values(sampleOutputs('ended', 1))
    const outputs = {
      a: { ...output, bytes: 40 },
      b: { ...output, bytes: 2 },
      c: { ...output, bytes: 8, copied: true },
    }
    const ofEnded = [
      JSON.stringify({ ...sampleJob({ createdAt: 1, app: 'a', status: 'SUCCEEDED', name: 'Łódź' }), outputs }),
      '{"dam',
    ]
    for (const [index, record] of ofEnded.entries())
      database
        .prepare(
          `INSERT INTO jobs (id, app, created_at, status, workflow, deleted, removable_at, record) VALUES (?, 'a', ` +
            `1, 'SUCCEEDED', 'w', 0, 4e12, ?)`,
        )
        .run([`ended-${index}`, record])
    database.close()
    const said: string[] = []
    const logger = { ...silentLogger, info: (_fields: object, message: string) => void said.push(message) }
    const { jobs, close } = sqliteStores({ path, logger })
    expect(said).toEqual([expect.stringContaining('The job database is being upgraded.')])
    expect(await jobs.resultBytes('a')).toBe(42)
    expect(await jobs.count({ app: 'a', search: 'lodz' })).toBe(1)
    const claimed: (string | undefined)[] = []
    for (let n = 0; n < 4; n++) claimed.push((await jobs.claim({ owner: 'w', leaseMs: 60_000 }))?.id)
    expect(claimed).toEqual(['lapsed', 'early', 'late', undefined])
    close()
    sqliteStores({ path, logger }).close()
    expect(said).toHaveLength(1)
  })

  test('copies its log into the file in small parts: a large one holds the event loop', async () => {
    const store = sqliteStores({ path })
    for (let n = 0; n < 200; n++) await store.jobs.create(sampleJob({ params: { text: 'x'.repeat(16_000) } }))
    const { size } = await stat(`${path}-wal`)
    store.close()
    // 400 pages with their headers, and the excess of one commit.
    expect(size).toBeLessThan(450 * 4200)
  })

  test.skipIf(process.platform === 'win32')(
    'is readable for its owner alone, with the files beside it and the folder that was made for it (needs POSIX modes)',
    async () => {
      const modeOf = async (file: string) => ((await stat(file)).mode & 0o777).toString(8)
      const store = sqliteStores({ path })
      await store.jobs.create(sampleJob())
      const files = await readdir(dirname(path))
      expect(files).toEqual(['jobs.db', 'jobs.db-wal'])
      for (const file of files) expect([file, await modeOf(join(dirname(path), file))]).toEqual([file, '600'])
      expect(await modeOf(dirname(path))).toBe('700')
      store.close()

      // As an earlier version left the file.
      await chmod(path, 0o644)
      await chmod(dirname(path), 0o755)
      const again = sqliteStores({ path })
      expect([await modeOf(path), await modeOf(dirname(path))]).toEqual(['600', '755'])
      again.close()
    },
  )

  test('is refused to a second store of the same process until the first is closed', () => {
    const first = sqliteStores({ path })
    expect(() => sqliteStores({ path, openTimeoutMs: 0 })).toThrow(/in use/)
    // Nor does the attempt admit another process.
    const take = "new (require('libsql'))(process.argv[1]).exec('BEGIN IMMEDIATE')"
    expect(spawnSync(process.execPath, ['-e', take, path], { encoding: 'utf8' }).stderr).toContain('SQLITE_BUSY')
    first.close()
    sqliteStores({ path, openTimeoutMs: 0 }).close()
  })

  test('answers with an error after close, never with an absent job', async () => {
    const { jobs, close } = sqliteStores({ path })
    const { job } = await jobs.create(sampleJob())
    close()
    close()
    await expect(jobs.get(job.id)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(jobs.list({ limit: 1 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(jobs.create(sampleJob())).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  test('that is not a database is refused with a reason', async () => {
    const other = join(directory, 'song.mp3')
    await writeFile(other, 'ID3'.repeat(5000))
    expect(() => sqliteStores({ path: other })).toThrow(
      expect.objectContaining({
        code: 'STORE_UNAVAILABLE',
        retryable: false,
        message: expect.stringContaining('not a SQLite database'),
      }),
    )
  })

  test('of a newer version of the library is refused', () => {
    sqliteStores({ path }).close()
    const database = new Database(path)
    database.exec(`PRAGMA user_version = ${migrations.length + 1}`)
    database.close()
    expect(() => sqliteStores({ path })).toThrow(/newer version/)
  })

  test('with a record that was changed by hand throws when that record is read, and serves the others', async () => {
    const first = sqliteStores({ path })
    const { job: damaged } = await first.jobs.create(sampleJob())
    const { job: whole } = await first.jobs.create(sampleJob())
    first.close()
    const database = new Database(path)
    for (const record of [`{"id":"${damaged.id}"}`, 'not json']) {
      database.prepare('UPDATE jobs SET record = ? WHERE id = ?').run([record, damaged.id])
    }
    database.close()
    const { jobs, close } = sqliteStores({ path })
    await expect(jobs.get(damaged.id)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await jobs.get(whole.id)).toEqual(whole)
    const { engine } = testEngine(textWorkflow(), {}, { jobs })
    expect((await engine.list({ limit: 10 })).map(({ id }) => id)).toEqual([whole.id])
    expect(await engine.health()).toMatchObject({ ok: true, warnings: [expect.stringContaining(damaged.id)] })
    close()
  })

  test('gives back ids and keys with U+0000 whole', async () => {
    const { jobs, close } = sqliteStores({ path })
    const id = 'a\u0000b'
    await jobs.create(sampleJob({ id }))
    await jobs.apply(id, { kind: 'delete' })
    expect(await jobs.purge({ id })).toEqual([id])
    for (const key of ['', id, 'c']) await jobs.documents.put({ kind: 'k', key, value: 1, ttlMs: 60_000, dueInMs: 0 })
    expect((await jobs.documents.get('k', id))?.key).toBe(id)
    const keys = (found: { key: string }[]) => found.map(({ key }) => key)
    expect(keys(await jobs.documents.list('k', { limit: 9, after: '' }))).toEqual([id, 'c'])
    expect(keys(await jobs.documents.due('k', 9)).sort()).toEqual(['', id, 'c'])
    close()
  })

  test('is written in part by no failed create', async () => {
    const { jobs, close } = sqliteStores({ path })
    const { job } = await jobs.create(sampleJob({ uploads: { inputUrl: 'uploads/app-1/a' } }))
    await expect(jobs.create({ ...job, uploads: { inputUrl: 'uploads/app-1/b' } })).rejects.toMatchObject({
      code: 'ALREADY_EXISTS',
    })
    expect(await jobs.count({ uploadKey: 'uploads/app-1/b' })).toBe(0)
    expect((await jobs.create(sampleJob())).created).toBe(true)
    close()
  })

  test('keeps the sums of what applications have right through every change', async () => {
    const { jobs, close } = sqliteStores({ path })
    const ended = async (change: object) => {
      const { job } = await jobs.create(sampleJob({ app: 'a' }))
      const claimed = await jobs.claim({ id: job.id, owner: 'w', leaseMs: 60_000 })
      await jobs.apply(job.id, { ...succeed(claimed!), nonce: claimed?.lease?.nonce, ...change })
      return job.id
    }
    const outputs = (bytes: number) => ({ a: { key: 'a', bytes, contentType: 'audio/wav', fileName: 'a.wav' } })
    const [, expired, deleted] = [
      await ended({ outputs: outputs(1) }),
      await ended({ outputs: outputs(20) }),
      await ended({}),
    ]
    const purged = await ended({ outputs: outputs(300) })
    await jobs.createAll([sampleJob({ app: 'b' })])
    expect(await jobs.resultBytes('a')).toBe(1 + 20 + 44 + 300)
    await jobs.apply(expired, { kind: 'expire' })
    for (const id of [deleted, purged]) await jobs.apply(id, { kind: 'delete' })
    await jobs.purge({ id: purged })
    const kept = await Promise.all(
      ['a', 'b', 'none'].map(async (app) => [await jobs.resultBytes(app), await jobs.recordBytes(app)]),
    )
    close()
    const database = new Database(path)
    const sums = database
      .prepare(
        `SELECT coalesce(sum(result_bytes), 0) AS results, coalesce(sum(iif(deleted, 0, record_bytes)), 0) AS records
        FROM (SELECT 'a' AS app UNION VALUES ('b'), ('none')) LEFT JOIN jobs USING (app) GROUP BY app ORDER BY app`,
      )
      .all() as { results: number; records: number }[]
    database.close()
    expect(kept).toEqual(sums.map(({ results, records }) => [results, records]))
    expect(kept[0]![0]).toBeGreaterThan(0)
  })
})

describe('every query of the SQLite store', () => {
  const queries: [string, JobQuery, RegExp][] = [
    ['all', {}, /jobs_by_time/],
    ['one application', { app: 'a' }, /jobs_by_app/],
    ['one status', { statuses: ['QUEUED'] }, /jobs_by_time/],
    ['an application since', { app: 'a', createdAfter: 5 }, /jobs_by_app/],
  ]

  test.each(queries)('lists %s in the order of an index, without sorting', (_name, query, index) => {
    const plan = explain(listSql({ ...query, limit: 10, after: { createdAt: 1, id: 'x' } }).text, 20)
    expect(plan).toMatch(index)
    expect(plan).not.toMatch(/TEMP B-TREE/)
  })

  const merged: [string, JobQuery, RegExp][] = [
    ['a status', { statuses: ['QUEUED'] }, /jobs_by_status \(status=\? AND app=\?/],
    ['several statuses', { statuses: ['SUCCEEDED', 'FAILED'] }, /jobs_by_status \(status=\? AND app=\?/],
    ['a workflow', { workflows: ['w'] }, /jobs_by_workflow \(app=\? AND workflow=\? AND status=\?/],
    [
      'workflows and a status',
      { workflows: ['v', 'w'], statuses: ['FAILED'] },
      /jobs_by_workflow \(app=\? AND workflow=\? AND status=\?/,
    ],
    ['a batch', { batchName: 'b' }, /jobs_by_batch \(app=\? AND batch_name=\? AND status=\?/],
    [
      'a batch and a status',
      { batchName: 'b', statuses: ['FAILED'] },
      /jobs_by_batch \(app=\? AND batch_name=\? AND status=\?/,
    ],
    ['a time of their ends', { completedAfter: 5 }, /jobs_by_end \(app=\? AND status=\? AND completed_at>\?/],
    [
      'a span of their ends and a status',
      { completedAfter: 5, completedBefore: 9, statuses: ['FAILED'] },
      /jobs_by_end \(app=\? AND status=\? AND completed_at>\? AND completed_at<\?/,
    ],
  ]

  test.each(merged)(
    "finds an application's jobs of %s in lists that an index keeps in order",
    (_name, query, index) => {
      const plan = explain(listSql({ app: 'a', ...query, limit: 10 }).text, 50)
      // Only the few rows that the lists return are sorted.
      const searches = plan.split('\n').filter((line) => /(SEARCH|SCAN) jobs/.test(line) && !/autoindex/.test(line))
      expect(searches).not.toHaveLength(0)
      for (const search of searches) expect(search).toMatch(index)
      const count = explain(countSql({ app: 'a', ...query }, 10_000).text, 50)
      expect(count).toMatch(/SEARCH jobs USING COVERING INDEX/)
    },
  )

  test('counts the queued jobs of an application in an index alone', () => {
    expect(explain(countSql({ app: 'a', statuses: ['QUEUED'] }).text, 2)).toMatch(/COVERING INDEX jobs_by_status/)
    expect(explain(countSql({ statuses: ['QUEUED'] }).text, 1)).toMatch(/COVERING INDEX jobs_by_status/)
  })

  test('finds the few running jobs of all applications by their status', () => {
    expect(explain(listSql({ statuses: ['STARTED'], limit: 10 }).text)).toMatch(
      /USING INDEX jobs_by_status \(status=\?\)/,
    )
  })

  test('searches the texts of one application in the order of an index, without their rows', () => {
    const search = { app: 'a', search: 'two words' }
    const list = explain(listSql({ ...search, statuses: ['FAILED'], limit: 10, after: { createdAt: 1, id: 'x' } }).text)
    expect(list).toBe('SEARCH jobs USING INDEX jobs_by_app (app=? AND (created_at,id)<(?,?))')
    expect(explain(countSql(search, 100).text)).toContain('SEARCH jobs USING COVERING INDEX jobs_by_app (app=?)')
  })

  test('counts the ends in a span of the whole store by their time', () => {
    const count = countSql({ statuses: ['FAILED'], completedAfter: 5, completedBefore: 9 }, 100)
    expect(explain(count.text)).toMatch(/SEARCH jobs USING INDEX jobs_ended \(completed_at>\? AND completed_at<\?\)/)
  })

  test('finds the jobs of an upload by index', () => {
    const plan = explain(countSql({ uploadKey: 'k', statuses: ['QUEUED', 'STARTED'] }).text, 3)
    expect(plan).toMatch(/job_uploads_by_key/)
    expect(plan).not.toMatch(/SCAN jobs/)
  })

  test('finds the rows without a text for searches by index, as it looks for them at each start', () => {
    expect(explain(countUnfilledSql)).toMatch(/USING INDEX jobs_unfolded/)
  })

  function explain(sql: string, maxParameters = Infinity): string {
    const database = new Database(':memory:')
    database.exec(migrations.join(';'))
    const parameters = Array.from({ length: Math.min(maxParameters, sql.split('?').length - 1) }, () => 1)
    const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(parameters) as { detail: string }[]
    database.close()
    return rows.map((row) => row.detail).join('\n')
  }
})
