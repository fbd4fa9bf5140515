import { spawn } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasProgram } from '../servers/found-server.js'
import { startPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'
import { startS3Server, type S3Server } from '../servers/s3-server.js'
import { pageOf, root, type Snippet, splitScript } from './snippets.js'
import { leftLines, type Surroundings, type Treatment, treatments } from './stand-ins.js'
import { typeProblems } from './type-problems.js'

/** A folder with packages in `node_modules`, in which snippets are run. */
export interface SnippetProject {
  folder: string
  /** Folder of the commands that scripts call; see `commandsOf`. */
  bin: string
}

/**
 * Makes a folder with the commands `stemwork` and `npx`, which run the command line of an installed package. Commands
 * that run forever are started by a program that stops them.
 */
export async function commandsOf(folder: string, installed: string): Promise<string> {
  const bin = join(folder, 'commands')
  await mkdir(bin)
  const shim = join(root, 'test/examples/fixtures/stemwork.mjs')
  const main = join(installed, 'dist/cli/main.js')
  const node = `exec "${process.execPath}"`
  await writeFile(
    join(bin, 'stemwork'),
    `#!/bin/sh
case "$1" in
  serve | worker) ${node} "${shim}" "${main}" "$@" ;;
  live) ${node} "${main}" "$@" ;;
  *) ${node} "${main}" "$@" </dev/null ;; # The other commands of the script must not wait for it.
esac
`,
  )
  await writeFile(join(bin, 'npx'), '#!/bin/sh\nexec "$@"\n')
  for (const name of ['stemwork', 'npx']) await chmod(join(bin, name), 0o755)
  return bin
}

const key = 'a-key-of-your-own'
const canRunScripts = hasProgram('bash') && hasProgram('curl')
const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
const missing = [postgres, redis].flatMap((server) => ('missing' in server ? [server.missing] : []))

/**
 * The tests of these snippets: programs type-check against the project's packages, and programs and scripts run and
 * print the expected output.
 *
 * @param projectOf the project of a page; called when the tests run
 */
export function describeSnippets(
  snippets: readonly Snippet[],
  projectOf: (page: string) => Promise<SnippetProject>,
): void {
  const programs = snippets.filter(({ language }) => language === 'js' || language === 'ts')
  const scripts = snippets.filter(({ language }) => language === 'sh')
  let s3: S3Server
  let surroundings: Surroundings
  let stopService = async () => {}

  beforeAll(async () => {
    s3 = await startS3Server(['media'])
    const service = await startService()
    stopService = service.stop
    surroundings = {
      base: service.base,
      databaseUrl: 'missing' in postgres ? '' : postgres.url,
      redisUrl: 'missing' in redis ? '' : redis.url,
      s3: { url: s3.url, ...s3.credentials },
    }
    for (const snippet of programs) {
      const project = await projectOf(pageOf(snippet))
      const code = completed(snippet, surroundings)
      await writeFile(typedFileOf(snippet, project), code)
      if (snippet.language === 'ts') await writeFile(fileOf(snippet, project), withoutTypes(code))
    }
  })
  afterAll(async () => {
    await stopService()
    await s3.close()
    for (const server of [postgres, redis]) if (!('missing' in server)) await server.release()
  })

  describe('the programs in the documentation', () => {
    test('have the types that the packages have', async () => {
      const files = new Map<string, string[]>()
      for (const snippet of programs) {
        const project = await projectOf(pageOf(snippet))
        files.set(project.folder, [...(files.get(project.folder) ?? []), typedFileOf(snippet, project)])
      }
      expect([...files].map(([folder, paths]) => typeProblems(folder, paths)).join('')).toBe('')
    })

    for (const snippet of programs) {
      const why = obstacle(snippet, false)
      test.skipIf(why)(`${snippet.name} runs${why ? ` (skipped: ${why})` : ''}`, async () => {
        const project = await projectOf(pageOf(snippet))
        await expectRun(project, process.execPath, [fileOf(snippet, project)], snippet, surroundings)
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
        const text = completed({ ...snippet, code: script }, surroundings)
        const project = await projectOf(pageOf(snippet))
        await expectRun(project, 'bash', ['-euo', 'pipefail', '-c', text], snippet, surroundings)
      })
    }
  })
}

const fileOf = ({ name }: Snippet, { folder }: SnippetProject) =>
  join(folder, `${name.replace(/[^A-Za-z0-9]+/g, '-')}.mjs`)
/** The file for the compiler: for TypeScript, not the file that runs. */
const typedFileOf = (snippet: Snippet, project: SnippetProject) =>
  fileOf(snippet, project).replace(/mjs$/, snippet.language === 'ts' ? 'mts' : 'mjs')

const withoutTypes = (code: string) =>
  ts.transpileModule(code, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
  }).outputText

const treatmentOf = ({ name }: Snippet): Treatment => treatments[name] ?? {}

/** `(skipped: ...)` in the name of a test that this machine cannot run. */
function obstacle(snippet: Snippet, needsShell: boolean): string | undefined {
  return (
    (treatmentOf(snippet).needsServers && missing.join('; ')) ||
    (needsShell && !canRunScripts && 'no bash or no curl') ||
    undefined
  )
}

function completed(snippet: Snippet, surroundings: Surroundings): string {
  const { before = '', after = '', replace } = treatmentOf(snippet)
  let code = snippet.code
  for (const [text, standIn] of replace?.(surroundings) ?? []) {
    if (!code.includes(text)) throw new Error(`${snippet.name} has no "${text}" any more.`)
    code = code.replaceAll(text, standIn)
  }
  return [before, code, after].join('\n')
}

/** Runs the snippet in its own folder, which contains `song.mp3`. */
async function expectRun(
  project: SnippetProject,
  command: string,
  given: string[],
  snippet: Snippet,
  surroundings: Surroundings,
): Promise<void> {
  const { prints, servesOn = false } = treatmentOf(snippet)
  const place = await mkdtemp(join(project.folder, 'run-'))
  await copyFile(join(root, 'test/fixtures/audio/stereo.mp3'), join(place, 'song.mp3'))
  const child = spawn(command, given, {
    cwd: place,
    env: environment(place, project, surroundings),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
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

function environment(home: string, project: SnippetProject, surroundings: Surroundings): NodeJS.ProcessEnv {
  // Node's test runner reports differently inside the process of another runner.
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|NODE_TEST_CONTEXT|NODE_OPTIONS|STEMWORK_|PORT$)/.test(name),
  )
  return {
    ...Object.fromEntries(own),
    PATH: [project.bin, process.env.PATH].join(delimiter),
    STEMWORK_MODELS: join(home, 'models'),
    STEMWORK_LINK_SECRET: 'a secret of the tests that is long enough',
    DATABASE_URL: surroundings.databaseUrl,
    REDIS_URL: surroundings.redisUrl,
    AWS_ACCESS_KEY_ID: surroundings.s3.accessKeyId,
    AWS_SECRET_ACCESS_KEY: surroundings.s3.secretAccessKey,
  }
}

async function startService(): Promise<{ base: string; stop(): Promise<void> }> {
  const child = spawn(process.execPath, [join(root, 'dist/cli/main.js'), 'serve', '--port', '0', '--api-keys', key], {
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
