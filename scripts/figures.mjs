// Prints the size of the project beside that of the last release, scripts/figures.json; a figure above its limit in
// scripts/limits.mjs is an error. Run "npm run build" first.
//   node scripts/figures.mjs [--install] [--markdown] [--write]
// --install   also what "npm install" of the packed tarball adds to an empty project, which needs the registry
// --markdown  as a table
// --write     writes scripts/figures.json, without times, which mean little on another machine: the numbers of
//             modules and of type instantiations show whether times change
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { createEngine } from '../dist/index.js'
import { createHandler } from '../dist/http/index.js'
import { limits } from './limits.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const committedFile = new URL('figures.json', import.meta.url)
const committed = JSON.parse(readFileSync(committedFile, 'utf8'))
const folder = mkdtempSync(join(tmpdir(), 'stemwork-figures-'))
const isMarkdown = process.argv.includes('--markdown')

try {
  const found = {}
  if (isMarkdown) console.log('| figure | now | last release | change | limit |\n| --- | --: | --: | --: | --: |')
  else console.log(`${'figure'.padEnd(20)}      now     release   change       limit`)
  for await (const [name, value] of figures()) {
    if (!name.endsWith('Ms')) found[name] = value
    console.log(row(name, value))
    if (value <= (limits[name] ?? Infinity)) continue
    console.error(`${name}: ${value}, and the limit is ${limits[name]}. Make it smaller, or say in the change why not.`)
    process.exitCode = 1
  }
  if (process.argv.includes('--write'))
    writeFileSync(committedFile, `${JSON.stringify({ ...committed, ...found }, null, 2)}\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function row(name, value) {
  const before = committed[name]
  const change = before === undefined ? '' : `${value < before ? '' : '+'}${((value / before - 1) * 100).toFixed(1)} %`
  const cells = [name, value, before ?? '', change, limits[name] ?? ''].map(String)
  if (isMarkdown) return `| ${cells.join(' | ')} |`
  const [label, now, was, difference, limit] = cells
  const columns = [label.padEnd(20), now.padStart(9), was.padStart(12), difference.padStart(9), limit.padStart(12)]
  return columns.join('')
}

async function* figures() {
  const lengths = filesOf(join(root, 'src'))
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => readFileSync(path, 'utf8').split('\n').length - 1)
  yield ['sourceFiles', lengths.length]
  yield ['sourceLines', lengths.reduce((sum, lines) => sum + lines, 0)]
  yield ['longestFileLines', Math.max(...lengths)]

  yield ['importedModules', importedModules()]
  yield ['importCpuMs', Math.min(...Array.from({ length: 5 }, importCpuMs))]

  yield* pageBytes()
  yield* typeCheck()

  const packed = JSON.parse(run(`npm pack --json --ignore-scripts --pack-destination "${folder}"`, root))
  const { filename, size, unpackedSize, entryCount } = Object.values(packed)[0]
  yield ['tarballBytes', size]
  yield ['unpackedBytes', unpackedSize]
  yield ['tarballFiles', entryCount]

  if (!process.argv.includes('--install')) return
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  run(`npm install --no-audit --no-fund "${join(folder, filename)}"`, folder)
  const installed = join(folder, 'node_modules')
  const { packages } = JSON.parse(readFileSync(join(installed, '.package-lock.json'), 'utf8'))
  yield ['installedBytes', filesOf(installed).reduce((sum, path) => sum + statSync(path).size, 0)]
  yield ['installedPackages', Object.keys(packages).length]
}

/** CPU time without Node's own start; it depends less on the machine's load than wall time. */
function importCpuMs() {
  const code =
    "const began = process.cpuUsage(); await import('stemwork'); const { user, system } = process.cpuUsage(began); " +
    'console.log((user + system) / 1000)'
  return Math.round(Number(node(['--input-type=module', '--eval', code])))
}

/** Files that a new process loads for `import 'stemwork'`. */
function importedModules() {
  const record = new URL('../test/package/fixtures/record-loads.mjs', import.meta.url).href
  const code = "await import('stemwork'); console.log(globalThis.loadedFiles().length)"
  return Number(node(['--import', record, '--input-type=module', '--eval', code]))
}

/** Bytes that the first visit of each page transfers: the page, its style sheets and scripts, each gzipped. */
async function* pageBytes() {
  const engine = createEngine({ workflows: [] })
  const handler = createHandler(engine, { console: true, operator: { key: 'never asked for it' } })
  for (const page of ['console', 'operator', 'docs']) {
    const address = new URL(`http://localhost/${page}`)
    const html = await bytesOf(handler, address)
    const parts = [...html.toString().matchAll(/<(?:script|link)[^>]* (?:src|href)="([^"]+\.(?:js|css))[^"]*"/g)]
    if (parts.length === 0)
      throw new Error(`${address} names no script and no style sheet: ${html.toString('utf8', 0, 200)}`)
    const bodies = await withImports(handler, new Set(parts.map(([, path]) => new URL(path, address).href)))
    yield [`${page}Bytes`, [html, ...bodies].reduce((sum, body) => sum + gzipSync(body, { level: 9 }).length, 0)]
  }
  await engine.close()
}

/** The files at these addresses and the scripts that they import statically. */
async function withImports(handler, addresses) {
  const bodies = []
  for (const address of addresses) {
    const body = await bytesOf(handler, new URL(address))
    bodies.push(body)
    for (const [, path] of body.toString().matchAll(/(?:\bfrom|\bimport)\s*"(\.{1,2}\/[\w./-]+\.js)"/g))
      addresses.add(new URL(path, address).href)
  }
  return bodies
}

async function bytesOf(handler, address) {
  const answer = await handler(
    new Request(address, { headers: { accept: 'text/html', 'accept-encoding': 'identity' } }),
  )
  if (answer.status !== 200) throw new Error(`${address} answered with the status ${answer.status}`)
  return Buffer.from(await answer.arrayBuffer())
}

/**
 * Cost for the compiler of a program that imports the main entry. The number of instantiations does not depend on the
 * machine.
 */
function* typeCheck() {
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const options = '--noEmit --strict --skipLibCheck --target es2022 --module nodenext --types node'
  const atExit = "process.on('exit', () => console.log('CPU:', process.cpuUsage().user))"
  const hook = ['--import', `data:text/javascript,${encodeURIComponent(atExit)}`]
  const told = node([...hook, tsc, ...options.split(' '), '--extendedDiagnostics', 'test/types/index.ts'])
  yield ['typeInstantiations', Number(/^Instantiations:\s+(\d+)/m.exec(told)[1])]
  yield ['typeCheckCpuMs', Math.round(Number(/^CPU: (\d+)/m.exec(told)[1]) / 1000)]
}

function node(words) {
  const { stdout, stderr, status } = spawnSync(process.execPath, words, { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Error(`node ${words.join(' ')} failed: ${stderr}${stdout}`)
  return stdout
}

function filesOf(path) {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

function run(command, cwd) {
  // With a shell, Windows finds npm.cmd.
  const { stdout, stderr, status } = spawnSync(command, { cwd, encoding: 'utf8', shell: true })
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`)
  return stdout
}
