import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { newJobSchema } from '../../src/http/schemas.js'
import { manifestSchema } from '../../src/core/models/manifest.js'
import { commandsOf, describeSnippets, type SnippetProject } from './snippet-runs.js'
import { importedPackages, pageOf, packagesOf, root, runSnippets } from './snippets.js'
import { treatments } from './stand-ins.js'
import { buildDeclarations } from '../declarations.js'

// A script starts one process after another, which takes minutes on a busy machine.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 })

const snippets = runSnippets()
let project: SnippetProject

beforeAll(async () => {
  buildDeclarations()
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-snippets-'))
  // Like a project that has installed the package and its peers. `test/platforms` uses real ones.
  await mkdir(join(folder, 'node_modules'))
  const installed = (await readdir(join(root, 'node_modules'))).filter((name) => !name.startsWith('.'))
  await Promise.all(
    installed.map((name) => symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'junction')),
  )
  await symlink(root, join(folder, 'node_modules/stemwork'), 'junction')
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  project = { folder, bin: await commandsOf(folder, root) }
})
afterAll(() => rm(project.folder, { recursive: true, force: true }))

describeSnippets(snippets, async () => project)

test('every program imports only what its page says to install', () => {
  const missing = snippets.flatMap((snippet) => {
    const said = packagesOf(pageOf(snippet))
    return importedPackages(snippet.code)
      .filter((name) => !said.includes(name))
      .map((name) => `${snippet.name}: npm install ${name}`)
  })
  expect(missing).toEqual([])
  expect(
    importedPackages("import a from 'a'\nimport { b } from '@b/c/d'\nawait import('e/f')\nimport 'node:fs'"),
  ).toEqual(['a', '@b/c', 'e'])
})

test('every stand-in belongs to a snippet', () => {
  const names = snippets.map(({ name }) => name)
  expect(Object.keys(treatments).filter((name) => !names.includes(name))).toEqual([])
})

/** Schemas of the JSON blocks, by page and heading. */
const jsonKinds: Record<string, z.ZodType> = {
  'docs/agents.md: Over standard input and output': z.strictObject({
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
  'docs/models.md: Custom models': manifestSchema,
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

test('every JSON block has the meaning that its page says', () => {
  const blocks = snippets.filter(({ language }) => language === 'json')
  expect(blocks.map(({ name }) => name).sort()).toEqual(Object.keys(jsonKinds).sort())
  for (const { name, code } of blocks) expect(jsonKinds[name]?.safeParse(JSON.parse(code)).error, name).toBeUndefined()
})

test('the program in Python is the example that is run beside this', async () => {
  const programs = snippets.filter(({ language }) => language === 'python').map(({ code }) => code.trim())
  expect(programs).toEqual([(await readFile(join(root, 'examples/workflows/transcribe.py'), 'utf8')).trim()])
})

test('no block has a language that no test runs', () => {
  // Diagrams, nginx configuration, the head of a request, and the generated help of the command line are not programs.
  const known = ['js', 'ts', 'sh', 'json', 'python', 'mermaid', 'nginx', 'http']
  const others = snippets.filter(({ language }) => !known.includes(language))
  expect([...new Set(others.map(({ name }) => name.split(':')[0]))]).toEqual(['docs/command-line.md'])
})
