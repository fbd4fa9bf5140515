import { spawnSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { command, type Finished, Stemwork } from '../cli/stemwork.js'
import { noise, writeWav } from '../separation/tracks.js'
import { startPostgres } from '../servers/postgres.js'
import { type S3Server, startS3Server } from '../servers/s3-server.js'
import { expectToTeach, type Mistake } from './table.js'
import { temporaryFolder } from '../temporary-folder.js'

const place = temporaryFolder()
let s3: S3Server
beforeAll(async () => {
  s3 = await startS3Server()
  await writeWav(join(place, 'song.wav'), [noise(2 * 44_100)], 44_100, '16')
  await mkdir(join(place, 'disk'))
})
afterAll(async () => {
  await s3.close()
})
afterEach(() => void vi.unstubAllEnvs())

/** Runs the command in this process, in the test's folder, with these variables. */
function commandWith(env: Record<string, string>, words: string[]): Promise<Finished> {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  return command(words, place)
}

/** Requests that an S3 server refuses. */
interface BucketMistake extends Mistake {
  bucket?: string
  /** The region of the bucket. */
  region?: string
  env?: Record<string, string>
  /** Whether the server hides its time, by which the SDK would correct the clock. */
  hidesDate?: boolean
}

/** A clock that is 20 minutes slow. */
const slowClock = `--import data:text/javascript,${encodeURIComponent(
  'const D = Date; const slow = () => D.now() - 1.2e6; globalThis.Date = class extends D {' +
    'constructor(...given) { super(...(given.length ? given : [slow()])) } static now() { return slow() } }',
)}`

const buckets: BucketMistake[] = [
  {
    what: 'of another name',
    bucket: 'tset',
    says: [/s3:\/\/tset at .*404 NoSuchBucket/, /correct its name in the URL/],
  },
  {
    what: 'in another region',
    region: 'eu-west-1',
    says: [/'us-east-1' is wrong; expecting 'eu-west-1'/, /region=<name>/],
  },
  {
    what: 'of another account',
    env: { AWS_SECRET_ACCESS_KEY: 'wrong' },
    says: [/SignatureDoes/, /AWS_SECRET_ACCESS_KEY/],
  },
  { what: 'and a slow clock', env: { NODE_OPTIONS: slowClock }, hidesDate: true, says: [/TooSkewed/, /with NTP/] },
  { what: 'without a key', env: { AWS_ACCESS_KEY_ID: '' }, says: [/Set AWS_ACCESS_KEY_ID and/] },
]

const environment = () => ({
  AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
  // An empty variable counts as unset.
  AWS_REGION: '',
  AWS_EC2_METADATA_DISABLED: 'true',
})

test.each(buckets)('a bucket $what', async ({ bucket = 'test', region, hidesDate, env, ...mistake }) => {
  Object.assign(s3, { region, hidesDate })
  const words = ['doctor', '--api-only', '--blobs', `s3://${bucket}?endpoint=${s3.url}`]
  const all: Record<string, string> = { ...environment(), ...env }
  // A changed clock must differ from that of this process, so it needs another one.
  const { stdout } = await ('NODE_OPTIONS' in all
    ? new Stemwork(words, place, all).finished()
    : commandWith(all, words))
  expectToTeach(mistake, /^problem +blobs[^]*?(?=^\w)/m.exec(stdout)?.[0] ?? stdout)
})

test('a service with a bucket of another name starts, and its log says what to do, without a stack', async () => {
  Object.assign(s3, { region: undefined, hidesDate: false })
  const words = ['serve', '--port', '0', '--blobs', `s3://tset?endpoint=${s3.url}`]
  const service = new Stemwork(words, place, environment())
  const [line] = await service.printed('stderr', /^.* warn .*\n/m)
  service.kill('SIGINT')
  await service.finished()
  expectToTeach({ what: 'log', says: [/sweep of files.*Create the bucket.*NoSuchBucket: The specified/] }, line)
  expect(service.stderr).not.toMatch(/^ +at /m)
})

const password = 's3cret-of-the-server'
const postgres = await startPostgres(password)
const missing = 'missing' in postgres ? postgres.missing : undefined
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.release()
})

const databases: (Mistake & { change: Partial<URL> })[] = [
  { what: 'and a wrong password', change: { password: 's3cret' }, says: [/refuses the user or the password\. C/] },
  { what: 'without a password', change: { password: '' }, says: [/refuses the user or the password\. C/] },
  { what: 'and an unknown user', change: { username: 'nobody' }, says: [/refuses the user or the password\. C/] },
  { what: 'without the database', change: { pathname: '/jobs' }, says: [/"jobs" does not exist/, /Create/] },
]

test.skipIf(missing).each(databases)(
  `a Postgres that asks for passwords $what${missing ? ` (skipped: ${missing})` : ''}`,
  async ({ change, ...mistake }) => {
    const url = Object.assign(new URL('missing' in postgres ? '' : postgres.url), change)
    const words = ['--store', url.href, '--blobs', 'file:blobs']
    const env = { STEMWORK_LINK_SECRET: 'x'.repeat(32), PGPASSWORD: '' }
    const { status, stderr } = await commandWith(env, ['serve', '--port', '0', ...words])
    expect(status, stderr).toBe(1)
    expectToTeach({ ...mistake, says: [new RegExp(url.host), ...mistake.says] }, stderr)
    const { stdout } = await commandWith(env, ['doctor', '--api-only', ...words])
    expectToTeach(mistake, /^problem +storage[^]*/m.exec(stdout)?.[0] ?? stdout)
  },
)

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const mayMount = spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0

const disks: (Mistake & { options: string; words: string })[] = [
  { what: 'full', options: 'size=64k', words: 'serve --port 0 --data disk', says: [/disk of the job.*full.*Free/i] },
  ...['', ' --json', ' --jobs 1'].map((option) => ({
    what: 'full',
    options: 'size=64k',
    words: `separate song.wav -o disk/x${option}`,
    says: [/no space left.*Free some/],
  })),
  {
    what: 'read-only',
    options: 'ro',
    words: 'serve --port 0 --data disk/x',
    says: [/disk\/x can only be read\. Name/],
  },
  { what: 'read-only', options: 'ro', words: 'separate song.wav -o disk/x', says: [/disk\/x can only be read\. Name/] },
]

test.skipIf(!mayMount).each(disks)('a $what disk: stemwork $words', ({ options, words, ...mistake }) => {
  const script = `mount -t tmpfs -o ${options} none disk && exec "${process.execPath}" "${main}" ${words}`
  const { status, stdout, stderr } = spawnSync('unshare', ['-rm', 'sh', '-c', script], { cwd: place, encoding: 'utf8' })
  expect(status, stderr).toBe(1)
  // With --json on stdout; messages about several songs lack the program's name.
  expectToTeach(mistake, /^( *"message": |stemwork: |Failed:)[^]*/m.exec(stdout + stderr)?.[0] ?? stderr)
})

test('a folder where none can be created', async () => {
  const { status, stderr } = await command(['serve', '--port', '0', '--data', '/proc/x'], place)
  expect(status, stderr).toBe(1)
  expectToTeach({ what: '/proc', says: [/No folder can be made at \/proc\/x\. Name a path/] }, stderr)
})
