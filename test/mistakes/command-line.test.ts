import { mkdir, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { once } from 'node:events'
import Database from 'libsql'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { type SqliteStores, sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { command } from '../cli/stemwork.js'
import { expectToTeach, type Mistake } from './table.js'
import { temporaryFolder } from '../temporary-folder.js'

/** Typical typing mistakes of newcomers. `PORT` is taken; nothing listens on port 1. */
interface CommandMistake extends Mistake {
  words: string
  /** What it ends with, if that is told. */
  status?: number
  env?: Record<string, string>
}

const pg = 'postgres://me:s3cret@127.0.0.1:1/jobs'
const stored = '--store sqlite:jobs.db --blobs file:blobs'
const serve = 'serve --port 0 --workflows'

const mistakes: CommandMistake[] = [
  { what: 'port taken', words: 'serve --port PORT', says: [/Port \d+ of 127\.0\.0\.1 is in use/, /--port/] },
  { what: 'port in words', words: 'serve --port eighty', says: [/--port must be a whole number .*"eighty"/] },
  { what: 'unknown host', words: 'serve --port 0 --host nosuch.invalid', says: [/nosuch\.invalid.*another --host/] },
  { what: 'unknown command', words: 'seperate song.mp3', says: [/seperate\. Did you mean separate\?/] },
  { what: 'unknown option', words: 'serve --prot 80', says: [/--prot\. Did you mean --port\?/] },
  { what: 'wrong path', words: 'separate sogn.mp3', says: [/no file "sogn\.mp3"/, /Check the path/] },
  { what: 'not audio', words: 'separate text.mp3', says: [/is a text file; expected audio/] },
  {
    what: 'folder without songs',
    words: 'separate empty -o out',
    says: [/no audio or video files.*empty/, /Name files/],
  },
  { what: 'unknown format', words: 'separate text.mp3 --format wav', says: [/--format must be one of .*"wav"/] },
  { what: 'unknown stem', words: 'separate text.mp3 --stems vocal', says: [/--stems accepts vocals.*"vocal"/] },
  {
    what: 'folder that is a file',
    words: 'serve --port 0 --data plain',
    says: [/plain cannot be created.*Name another/],
  },
  { what: 'read-only place', words: 'serve --port 0 --data /dev/null/x', says: [/\/dev\/null\/x cannot be created/] },
  {
    what: 'not a database',
    words: 'serve --port 0 --store sqlite:plain --blobs file:b',
    says: [/not a SQLite.*\/plain/],
  },
  {
    what: 'database of a newer version',
    words: 'serve --port 0 --store sqlite:newer.db --blobs file:b',
    says: [/newer version of this library \(schema 999; this one knows \d+\)/],
  },
  {
    what: 'two services on one store',
    words: 'serve --port 0 --store sqlite:held.db --blobs file:b',
    says: [/held\.db is in use: by another process.*such as Postgres/],
    status: 1,
  },
  {
    what: 'blobs without a scheme',
    words: 'serve --store sqlite:j.db --blobs b',
    says: [/"b" is not understood.*file:/],
  },
  {
    what: 'files that are lost on exit',
    words: 'serve --store sqlite:j.db',
    says: [/--blobs memory:.*Give --blobs file:/],
  },
  {
    what: 'store of another kind',
    words: 'serve --store mysql://x/y --blobs file:b',
    says: [/mysql:.* is not understood.*postgres:/],
  },
  {
    what: 'store of another kind for a worker',
    words: 'worker --store bogus:x',
    says: [/--store bogus:.* is not understood.*postgres:/],
  },
  {
    what: 'store of another kind, alone',
    words: 'serve --store mysql://x/y',
    says: [/--store mysql:.* is not understood.*postgres:/],
  },
  {
    what: 'endless lyrics',
    words: 'practice text.mp3 --lyrics /dev/zero',
    says: [/--lyrics: .*\/dev\/zero.* at most \d+ bytes.*text file/],
  },
  {
    what: 'Postgres down',
    words: `serve --store ${pg} --blobs file:b`,
    says: [/127\.0\.0\.1:1\b/, /Start the server/],
  },
  {
    what: 'second worker on one file',
    words: `worker ${stored}`,
    says: [/with other processes: --store must be postgres:/],
  },
  { what: 'no link secret', words: `serve ${stored}`, says: [/links: set --data <dir>.*STEMWORK_LINK_SECRET/] },
  {
    what: 'short link secret',
    words: 'serve --port 0',
    env: { STEMWORK_LINK_SECRET: 'short' },
    says: [/secret in STEMWORK_LINK_SECRET must have at least 32 characters, not 5/],
    status: 2,
  },
  {
    what: 'short old link secret',
    words: 'serve --port 0',
    env: { STEMWORK_LINK_SECRET: `${'x'.repeat(32)},old` },
    says: [/Each secret in STEMWORK_LINK_SECRET must have at least 32 characters, not 3/],
  },
  { what: 'short key', words: 'serve --api-keys abc', says: [/must have 16 to 512 characters/], status: 2 },
  { what: 'address without https', words: 'serve --public-url x.org', says: [/like https:\/\/.*not "x\.org"/] },
  {
    what: 'wrong webhook secret',
    words: 'serve --port 0',
    env: { STEMWORK_WEBHOOK_SECRET: 'abc' },
    says: [/"whsec_"/],
    status: 2,
  },
  {
    what: 'wrong switch',
    words: 'serve',
    env: { STEMWORK_CONSOLE: 'on' },
    says: [/STEMWORK_CONSOLE.* 1 or 0, not "on"/],
  },
  { what: 'wrong variable', words: 'serve', env: { STEMWORK_PORT: 'x' }, says: [/port|PORT.*whole number.*"x"/] },
  { what: 'workflow file missing', words: `${serve} nowhere.mjs`, says: [/nowhere\.mjs could not.*Check the path/] },
  { what: 'truncated workflow file', words: `${serve} cut.mjs`, says: [/cut\.mjs could not.*SyntaxError.*cut\.mjs:1/] },
  { what: 'import missing', words: `${serve} import.mjs`, says: [/Cannot find package 'lodahs'.*import\.mjs/] },
  { what: 'file that throws', words: `${serve} throws.mjs`, says: [/throws\.mjs could not.*THING is missing.*:1/] },
  { what: 'no workflow in it', words: `${serve} other.mjs`, says: [/default export of other\.mjs.*defineWorkflow/] },
  {
    what: 'model misspelt',
    words: 'separate text.mp3 --model htdemux',
    says: [/no model "htdemux".*htdemucs/],
    status: 2,
  },
  { what: 'model not pulled', words: 'separate text.mp3 --model scnet', says: [/stemwork models pull scnet/] },
  {
    what: 'path without a model',
    words: 'separate text.mp3 --model ./no/model.json',
    says: [/\.\/no\/model\.json.*ENOENT/],
  },
  { what: 'incomplete manifest', words: 'separate text.mp3 --model ./model.json', says: [/version: is missing/] },
  { what: 'mcp without an address', words: 'mcp', says: [/--url, or STEMWORK_URL, .*for example http/] },
  { what: 'keys without a store', words: 'keys create', says: [/give --data <dir> or --store <url>/] },
  {
    what: 'private address',
    words: 'separate http://127.0.0.1:1/a.mp3',
    says: [/127\.0\.0\.1 is not a public address.*To allow it: --allow-private-inputs/],
  },
]

const folder = temporaryFolder()
let taken: Server
let held: SqliteStores
beforeAll(async () => {
  // A service that does not start leaves its signal handlers.
  process.setMaxListeners(100)
  taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const files = {
    'text.mp3': 'this is not audio\n'.repeat(200),
    plain: 'not a database at all '.repeat(100),
    'cut.mjs': 'export default {',
    'import.mjs': "import x from 'lodahs'\nexport default x",
    'throws.mjs': "throw new Error('THING is missing')",
    'other.mjs': 'export const workflow = 1',
    'model.json': '{ "name": "mine" }',
  }
  const newer = new Database(join(folder, 'newer.db'))
  newer.exec('PRAGMA user_version = 999')
  newer.close()
  held = sqliteStores({ path: join(folder, 'held.db') })
  await mkdir(join(folder, 'empty'))
  await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text)))
})
afterAll(async () => {
  taken.close()
  held.close()
})
afterEach(() => void vi.unstubAllEnvs())

test.each(mistakes)('$what: stemwork $words', async ({ words, env, status: expected, ...mistake }) => {
  const { port } = taken.address() as { port: number }
  const args = words.replace('PORT', String(port)).split(' ')
  const surroundings = { STEMWORK_MODELS: join(folder, 'models'), STEMWORK_LINK_SECRET: '', NO_COLOR: '1', ...env }
  for (const [name, value] of Object.entries(surroundings)) vi.stubEnv(name, value)
  const { status, stderr } = await command(args, folder)
  if (status === 0) throw new Error(`No mistake: ${stderr}`)
  expect(status, stderr).toBe(expected ?? status)
  // Earlier output may say that the workflows are ready.
  expectToTeach(mistake, /^stemwork: [^]*/m.exec(stderr)?.[0] ?? stderr)
})
