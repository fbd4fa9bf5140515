// Generates the Python client from the service's own OpenAPI document: node clients/python/generate.mjs [--out=folder] [--document=file]
// The generator (openapi-python-client, requirements.txt) is kept in .venv beside this file and installed when it is missing.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const here = import.meta.dirname
const { values } = parseArgs({ options: { out: { type: 'string' }, document: { type: 'string' } } })
const out = values.out ?? join(here, 'generated')
const venv = join(here, '.venv')
const bin = join(venv, process.platform === 'win32' ? 'Scripts' : 'bin')
const folder = mkdtempSync(join(tmpdir(), 'stemwork-python-'))

try {
  if (!existsSync(join(bin, process.platform === 'win32' ? 'openapi-python-client.exe' : 'openapi-python-client'))) {
    run('python3', ['-m', 'venv', venv])
    run(join(bin, 'python'), ['-m', 'pip', 'install', '-q', '-r', join(here, 'requirements.txt')])
  }
  const document = values.document ? JSON.parse(readFileSync(values.document, 'utf8')) : await ownDocument()
  const path = join(folder, 'openapi.json')
  writeFileSync(path, JSON.stringify(withoutFiles(document)))
  const args = [
    'generate',
    '--path',
    path,
    '--output-path',
    out,
    '--meta',
    'setup',
    '--config',
    join(here, 'config.yaml'),
  ]
  run(join(bin, 'openapi-python-client'), [...args, '--overwrite'])
} finally {
  rmSync(folder, { recursive: true })
}

async function ownDocument() {
  const { createEngine } = await import('../../dist/index.js')
  const { createHandler } = await import('../../dist/http/index.js')
  const engine = createEngine()
  const handler = createHandler(engine, { manageKeys: true })
  const answer = await handler(new Request('http://localhost/openapi.json'))
  await engine.close()
  return await answer.json()
}

/** The operations that take and give JSON and need the key. Files go by links, with any HTTP library; pages and streams are for others. */
function withoutFiles(document) {
  const paths = {}
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods)) {
      const needsKey = operation.security.some((scheme) => 'apiKey' in scheme)
      if (needsKey && operation.responses['200']?.content?.['application/json'])
        paths[path] = { ...paths[path], [method]: operation }
    }
  return { ...document, paths }
}

function run(program, args) {
  const { status, error } = spawnSync(program, args, { stdio: ['ignore', 2, 2] })
  if (error)
    throw new Error(`${program} could not be started: ${error.message}. It needs Python 3.11 or newer with pip.`)
  if (status !== 0) throw new Error(`${program} failed with status ${status}; the lines above say why.`)
}
