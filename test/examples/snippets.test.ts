import { spawn } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import ts from 'typescript'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newJobSchema } from '../../src/http/schemas.js'
import { manifestSchema } from '../../src/core/separation/models/manifest.js'
import { hasProgram } from '../servers/found-server.js'
import { startPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'
import { startS3Server, type S3Server } from '../servers/s3-server.js'
import { pages, root, type Snippet, snippetsOf, splitScript } from './snippets.js'
import { leftLines, type Surroundings, type Treatment, treatments } from './stand-ins.js'

// A script starts one process after the other: minutes on a machine that has much else to do.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 })

// `test/platforms` runs those of the other page, each in a project of its own.
const snippets = pages.filter((page) => page !== 'docs/platforms.md').flatMap(snippetsOf)
const programs = snippets.filter(({ language }) => language === 'js' || language === 'ts')
const scripts = snippets.filter(({ language }) => language === 'sh')
const key = 'a-key-of-your-own'
const canRunScripts = hasProgram('bash') && hasProgram('curl')

let folder: string
let s3: S3Server
let surroundings: Surroundings
let stopService = async () => {}
const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
const missing = [postgres, redis].flatMap((server) => ('missing' in server ? [server.missing] : []))
const release = async () => {
  for (const server of [postgres, redis]) if (!('missing' in server)) await server.release()
}

const fileOf = ({ name }: Snippet) => join(folder, `${name.replace(/[^A-Za-z0-9]+/g, '-')}.mjs`)
const treatmentOf = ({ name }: Snippet): Treatment => treatments[name] ?? {}
/** `(skipped: ...)` in the name of a test that this machine cannot run. */
const obstacle = (snippet: Snippet, needsShell: boolean) =>
  (treatmentOf(snippet).needsServers && missing.join('; ')) ||
  (needsShell && !canRunScripts && 'no bash or no curl') ||
  undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stemwork-snippets-'))
  // As in a project that has installed the package and what it is used with.
  await mkdir(join(folder, 'node_modules'))
  const installed = (await readdir(join(root, 'node_modules'))).filter((name) => !name.startsWith('.'))
  await Promise.all(
    installed.map((name) => symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'junction')),
  )
  await symlink(root, join(folder, 'node_modules/stemwork'), 'junction')
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  const bin = join(folder, 'bin')
  await mkdir(bin)
  const shim = join(root, 'test/examples/fixtures/stemwork.mjs')
  await writeFile(join(bin, 'stemwork'), `#!/bin/sh\nexec "${process.execPath}" "${shim}" "$@"\n`)
  await writeFile(join(bin, 'npx'), '#!/bin/sh\nexec "$@"\n')
  for (const name of ['stemwork', 'npx']) await chmod(join(bin, name), 0o755)

  s3 = await startS3Server(['media'])
  const service = await startService()
  stopService = service.stop
  surroundings = {
    base: service.base,
    databaseUrl: 'missing' in postgres ? '' : postgres.url,
    redisUrl: 'missing' in redis ? '' : redis.url,
    s3: { url: s3.url, ...s3.credentials },
  }
  for (const snippet of programs) await writeFile(fileOf(snippet), completed(snippet))
})
afterAll(async () => {
  await stopService()
  await s3.close()
  await release()
  await rm(folder, { recursive: true, force: true })
})

describe('the programs in the documentation', () => {
  test('have the types that the package has', () => {
    const { errors, options } = ts.convertCompilerOptionsFromJson(
      {
        strict: true,
        allowJs: true,
        checkJs: true,
        noEmit: true,
        skipLibCheck: true,
        target: 'es2022',
        module: 'nodenext',
        lib: ['es2023'],
        types: ['node'],
      },
      folder,
    )
    expect(errors).toEqual([])
    const program = ts.createProgram(programs.map(fileOf), options)
    const problems = ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
      const line = file && start !== undefined ? file.text.slice(0, start).split('\n').length : 0
      return `${file?.fileName.slice(folder.length + 1)}:${line} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
    })
    expect(problems).toEqual([])
  })

  for (const snippet of programs) {
    const why = obstacle(snippet, false)
    test.skipIf(why)(`${snippet.name} runs${why ? ` (skipped: ${why})` : ''}`, async () => {
      await expectRun(process.execPath, [fileOf(snippet)], treatmentOf(snippet))
    })
  }
})

describe('the commands in the documentation', () => {
  for (const snippet of scripts) {
    const { script, left } = splitScript(snippet.code, leftLines)
    for (const { line, reason } of left) test.skip(`${snippet.name}: ${line} (skipped: ${reason})`, () => {})
    if (!script.trim()) continue
    const why = obstacle(snippet, true)
    test.skipIf(why)(`${snippet.name} runs${why ? ` (skipped: ${why})` : ''}`, async () => {
      const text = completed({ ...snippet, code: script })
      await expectRun('bash', ['-euo', 'pipefail', '-c', text], treatmentOf(snippet))
    })
  }
})

test('every stand-in belongs to a snippet', () => {
  const names = snippets.map(({ name }) => name)
  expect(Object.keys(treatments).filter((name) => !names.includes(name))).toEqual([])
})

/** What the JSON blocks of a page are. */
const jsonKinds: Record<string, z.ZodType> = {
  'docs/agents.md: On standard input and output': z.strictObject({
    mcpServers: z.strictObject({
      stems: z.strictObject({
        command: z.literal('npx'),
        args: z.tuple([z.literal('stemwork'), z.literal('mcp')]),
        env: z.strictObject({ STEMWORK_URL: z.url(), STEMWORK_API_KEY: z.string() }),
      }),
    }),
  }),
  'docs/licences.md: Leaving out GPL and LGPL decoders': z.strictObject({
    overrides: z.record(z.string().regex(/^@audio\/decode-\w+$/), z.string().regex(/^npm:/)),
  }),
  'docs/models.md: A model of your own': manifestSchema,
  'docs/recipes.md: Keep results longer than the service does': newJobSchema,
  'docs/recipes.md: Upload to S3 from a browser': z.array(
    z.strictObject({
      AllowedOrigins: z.array(z.url()),
      AllowedMethods: z.array(z.enum(['GET', 'HEAD', 'PUT', 'POST', 'DELETE'])),
      AllowedHeaders: z.array(z.string()),
      ExposeHeaders: z.array(z.string()),
      MaxAgeSeconds: z.int(),
    }),
  ),
}

test('every JSON block is what its page says', () => {
  const blocks = snippets.filter(({ language }) => language === 'json')
  expect(blocks.map(({ name }) => name).sort()).toEqual(Object.keys(jsonKinds).sort())
  for (const { name, code } of blocks) expect(jsonKinds[name]?.safeParse(JSON.parse(code)).error, name).toBeUndefined()
})

test('no block is of a language that nothing here runs', () => {
  // Diagrams, the configuration of nginx, and the generated help of the command line are not programs.
  const others = snippets.filter(({ language }) => !['js', 'ts', 'sh', 'json', 'mermaid', 'nginx'].includes(language))
  expect([...new Set(others.map(({ name }) => name.split(':')[0]))]).toEqual(['docs/command-line.md'])
})

function completed(snippet: Snippet): string {
  const { before = '', after = '', replace } = treatmentOf(snippet)
  let code = snippet.code
  for (const [text, standIn] of replace?.(surroundings) ?? []) {
    if (!code.includes(text)) throw new Error(`${snippet.name} has no "${text}" any more.`)
    code = code.replaceAll(text, standIn)
  }
  return [before, code, after].join('\n')
}

/** Runs in a folder of its own in which `song.mp3` is. */
async function expectRun(command: string, given: string[], { prints, servesOn = false }: Treatment): Promise<void> {
  const place = await mkdtemp(join(folder, 'run-'))
  await copyFile(join(root, 'test/fixtures/audio/stereo.mp3'), join(place, 'song.mp3'))
  const child = spawn(command, given, { cwd: place, env: environment(place), stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let problems = ''
  child.stdout.on('data', (data: Buffer) => {
    output += data
    if (servesOn && prints?.test(output)) child.kill()
  })
  child.stderr.on('data', (data: Buffer) => (problems += data))
  const status = await new Promise((resolve) => child.once('close', resolve))
  expect(status, `${output}\n${problems}`).toBe(servesOn ? null : 0)
  if (prints) expect(output).toMatch(prints)
}

function environment(home: string): NodeJS.ProcessEnv {
  // Node's test runner reports differently inside another runner's process.
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|NODE_TEST_CONTEXT|NODE_OPTIONS|STEMWORK_|PORT$)/.test(name),
  )
  return {
    ...Object.fromEntries(own),
    PATH: [join(folder, 'bin'), process.env.PATH].join(delimiter),
    STEMWORK_MODELS: join(home, 'models'),
    STEMWORK_LINK_SECRET: 'a secret of the tests, long enough for links',
    DATABASE_URL: surroundings.databaseUrl,
    REDIS_URL: surroundings.redisUrl,
    AWS_ACCESS_KEY_ID: surroundings.s3.accessKeyId,
    AWS_SECRET_ACCESS_KEY: surroundings.s3.secretAccessKey,
  }
}

async function startService(): Promise<{ base: string; stop(): Promise<void> }> {
  const child = spawn(process.execPath, [join(root, 'dist/cli/main.js'), 'serve', '--port', '0', '--api-key', key], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = new Promise<undefined>((resolve) => child.once('exit', () => resolve(undefined)))
  const line = new Promise<string>((resolve) => child.stdout.once('data', (data: Buffer) => resolve(String(data))))
  const base = /on (\S+)/.exec((await Promise.race([line, ended])) ?? '')?.[1]
  if (!base) throw new Error('The service did not start.')
  return {
    base,
    async stop() {
      child.kill('SIGINT')
      await ended
    },
  }
}
