import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, expect, test, vi } from 'vitest'
import type { Finding } from '../../src/cli/commands/doctor-checks.js'
import { describeWith, freePort } from '../servers/found-server.js'
import { findPostgres } from '../servers/postgres.js'
import { findRedis } from '../servers/redis.js'
import { startS3Server } from '../servers/s3-server.js'
import { command, Stemwork } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

// Real servers that refuse connections, and ports without a listener.
vi.setConfig({ testTimeout: 120_000 })

const place = temporaryFolder()

async function doctor(words: string[], environment?: Record<string, string>): Promise<Record<string, Finding>> {
  const args = ['doctor', '--json', '--api-only', ...words]
  const { status, stdout, stderr } = await (environment
    ? new Stemwork(args, undefined, environment).finished()
    : command(args))
  expect(status, stderr).toBe(1)
  const { findings } = JSON.parse(stdout) as { findings: Finding[] }
  return Object.fromEntries(findings.map((finding) => [finding.check, finding]))
}

test('doctor says of an unreachable Postgres what was tried and what to do, without the password', async () => {
  const port = await freePort()
  const blobs = ['--blobs', `file:${place}`]
  const { storage: refused } = await doctor(['--store', `postgres://me:secret@127.0.0.1:${port}/jobs`, ...blobs])
  expect(refused).toMatchObject({
    status: 'problem',
    found: expect.stringMatching(new RegExp(`^postgres://127.0.0.1:${port}/jobs: .*ECONNREFUSED 127.0.0.1:${port}`)),
    todo: expect.stringContaining('Start the server'),
  })
  expect(JSON.stringify(refused)).not.toContain('secret')
  const { storage: unknown } = await doctor(['--store', 'postgres://nowhere.invalid/jobs', ...blobs])
  expect(unknown).toMatchObject({
    found: expect.stringMatching(/^postgres:\/\/nowhere\.invalid\/jobs: .*(ENOTFOUND|EAI_AGAIN) nowhere\.invalid/),
    todo: expect.stringContaining('host name'),
  })
})

test('doctor says so of an S3 server, and of a key that it refuses', async () => {
  const port = await freePort()
  const keys = { AWS_ACCESS_KEY_ID: 'unknown', AWS_SECRET_ACCESS_KEY: 'secret' }
  const { blobs: away } = await doctor(['--blobs', `s3://test?endpoint=http://127.0.0.1:${port}`], keys)
  expect(away).toMatchObject({
    status: 'problem',
    found: expect.stringMatching(
      new RegExp(`^s3://test at http://127.0.0.1:${port}: .*ECONNREFUSED 127.0.0.1:${port}`),
    ),
    todo: expect.stringContaining('Start the server'),
  })
  const server = await startS3Server()
  try {
    const { blobs: refused } = await doctor(['--blobs', `s3://test?endpoint=${server.url}`], keys)
    expect(refused).toMatchObject({
      found: expect.stringContaining('403 InvalidAccessKeyId'),
      todo: expect.stringContaining('AWS_ACCESS_KEY_ID'),
    })
  } finally {
    await server.close()
  }
})

const servers = { postgres: await findPostgres(), redis: await findRedis() }
afterAll(async () => {
  for (const server of Object.values(servers)) if ('release' in server) await server.release()
})

describeWith('doctor with Postgres and Redis', servers, ({ postgres, redis }) => {
  const schema = `doctor_${randomBytes(4).toString('hex')}`
  const store = () => `${postgres.url}${postgres.url.includes('?') ? '&' : '?'}schema=${schema}`

  afterAll(async () => {
    const client = new pg.Client({ connectionString: postgres.url })
    await client.connect()
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    await client.end()
  })

  test('says of a Redis that refuses the connection, or the password, what was tried and what to do', async () => {
    const port = await freePort()
    const words = ['--store', store(), '--blobs', `file:${place}`]
    const { queue: away } = await doctor([...words, '--queue', `redis://127.0.0.1:${port}`])
    expect(away).toMatchObject({
      status: 'problem',
      found: expect.stringMatching(new RegExp(`^redis://127.0.0.1:${port}: .*ECONNREFUSED 127.0.0.1:${port}`)),
      todo: expect.stringContaining('Start the server'),
    })
    const address = new URL(redis.url)
    address.username = 'nobody'
    address.password = 'wrong'
    const { queue: refused } = await doctor([...words, '--queue', address.href])
    expect(refused).toMatchObject({
      found: expect.stringContaining('WRONGPASS'),
      todo: expect.stringContaining('password'),
    })
    expect(refused?.found).not.toContain('nobody')
  })

  test('says what to do if Postgres does not have the user', async () => {
    const address = new URL(postgres.url)
    address.username = 'nobody_of_this_name'
    const { storage } = await doctor(['--store', address.href, '--blobs', `file:${place}`])
    expect(storage).toMatchObject({ status: 'problem', todo: expect.stringContaining('user or the password') })
  })
})
