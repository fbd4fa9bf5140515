// Changes the sources in one respect at a time and checks whether a test fails: npm run test:mutation [-- <folder or
// file> ...] [--fresh] [--tests <folder or file>]. All mutants of a folder are compiled into one build; each test file
// runs in one process, for each mutant that it reaches. Results are kept in .mutation/ and are only renewed when the
// source or a test has changed (--fresh: all; --tests: with these tests only). A mutant that survives must be explained
// in survivors.json; at least 90 % of each folder must be killed.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { transformSync } from 'esbuild'
import { folders } from './folders.mjs'
import { mutantsOf } from './mutants.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const notes = join(root, '.mutation')
const leastScore = 0.9
/** A test that takes longer than this plus five times its usual time has failed. */
const patienceMs = 2000
/** Test files that take longer than this for a mutant run only if no faster file kills it. */
const quickMs = 300
/** Mutants per process: what failed tests leave behind accumulates. */
const mutantsPerProcess = 200

const { values, positionals } = parseArgs({
  options: { fresh: { type: 'boolean' }, processes: { type: 'string', default: '2' }, tests: { type: 'string' } },
  allowPositionals: true,
})
/** Running processes. A mutant may never end, so no process may outlive this one. */
const children = new Set()
process.on('exit', () => children.forEach(kill))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1))
const explained = JSON.parse(readFileSync(new URL('survivors.json', import.meta.url), 'utf8'))
if (spawnSync(process.execPath, ['scripts/setup.mjs'], { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1)
mkdirSync(notes, { recursive: true })

/** The explanations in survivors.json whose file was mutated. */
const reported = new Set()
let isGood = true
for (const entry of folders) {
  const only = positionals.filter((path) => path.startsWith(entry.folder) || entry.folder.startsWith(path))
  if (positionals.length === 0 || only.length > 0) isGood = (await tryFolder(entry, only)) && isGood
}
if (positionals.length === 0)
  for (const key of Object.keys(explained).filter((each) => !reported.has(each)))
    console.log(`explained in survivors.json, but gone with its file: ${key}`)
process.exitCode = isGood ? 0 : 1

async function tryFolder({ folder, tests }, only) {
  const name = folder.replaceAll('/', '-').replace('src-', '')
  const files = filesOf(folder).filter((path) => path.endsWith('.ts') && !path.includes('/kernels/'))
  const build = `.mutation-${name}`
  const { mutants, hash } = makeBuild(build, files)
  const known = readJson(join(notes, `${name}.json`), { mutants: {}, coverage: {} })
  if (values.fresh) Object.assign(known, { mutants: {}, coverage: {} })
  const run = { name, build, mutants, known, path: join(notes, `${name}.json`) }

  const listed = (values.tests ? [values.tests] : tests).flatMap((path) =>
    path.endsWith('.ts')
      ? [path]
      : path.endsWith('/*')
        ? filesOf(dirname(path)).filter((file) => dirname(file) === dirname(path))
        : filesOf(path),
  )
  const testFiles = [...new Set(listed)].filter((path) => path.endsWith('.test.ts'))
  await inParallel(testFiles, async (file, lane) => {
    const key = `${hash} ${hashOf(readFileSync(join(root, file)))}`
    // Even starting a test file may fail on a busy machine.
    for (let tries = 2; known.coverage[file]?.key !== key; tries--)
      known.coverage[file] = await cover(run, file, lane).then(
        (found) => ({ key, ...found }),
        (error) => tries === 0 && Promise.reject(error),
      )
    save(run)
  })

  const chosen = mutants.filter(
    ({ file }) => only.length === 0 || only.some((path) => folder.startsWith(path) || file.startsWith(path)),
  )
  for (const mutant of chosen)
    if (known.mutants[mutant.name]?.source !== mutant.source)
      known.mutants[mutant.name] = { source: mutant.source, survived: {} }
  const lanes = Array.from({ length: Number(values.processes) }, (_, lane) =>
    tryMutants(
      run,
      chosen.filter((_mutant, index) => index % Number(values.processes) === lane),
      testFiles,
      lane,
    ),
  )
  await Promise.all(lanes)
  save(run)
  rmSync(join(root, build), { recursive: true, force: true })
  return report(folder, chosen, known, only.length === 0 || only.includes(folder))
}

/** Runs the remaining mutants against one test file after another, slow files last. */
async function tryMutants(run, mutants, testFiles, lane) {
  for (const mostMs of [quickMs, Infinity]) for (const file of testFiles) await tryIn(file, mostMs)

  async function tryIn(file, mostMs) {
    const { known } = run
    const { key, tests, reached } = known.coverage[file]
    const [, testHash] = key.split(' ')
    const left = mutants.filter((mutant) => {
      const { killedBy, survived } = known.mutants[mutant.name]
      if (!reached[mutant.id] || killedBy !== undefined || survived[file] === testHash) return false
      return mostMs === Infinity || costOf(mutant, tests, reached[mutant.id]) <= mostMs
    })
    while (left.length > 0) {
      const orders = left.slice(0, mutantsPerProcess).map((mutant) => orderFor(mutant, tests, reached[mutant.id]))
      const results = await runTests(run, file, orders, lane)
      for (const { id, isKilled, by } of results) {
        const { name } = left.splice(
          left.findIndex((mutant) => mutant.id === id),
          1,
        )[0]
        if (isKilled) known.mutants[name].killedBy = `${file}: ${by}`
        else known.mutants[name].survived[file] = testHash
      }
      if (results.length === 0) throw new Error(`${file} ended before it tried a mutant; see ${notes}.`)
      save(run)
    }
  }
}

function orderFor(mutant, tests, reach) {
  const wanted = testsFor(mutant, tests, reach)
  const slowest = Math.max(0, ...wanted.map(({ ms }) => ms))
  const timeoutMs = Math.ceil(patienceMs + 5 * slowest)
  const limitMs = 10_000 + 2 * timeoutMs + 5 * costOf(mutant, tests, reach)
  const isStatic = mutant.isStatic || reach.isLoaded
  return {
    id: mutant.id,
    isStatic,
    tests: wanted.map((test) => test.id),
    timeoutMs,
    limitMs,
    maxHits: 100_000 + 50 * reach.hits,
  }
}

function testsFor({ isStatic }, tests, { by, isLoaded }) {
  return isStatic || isLoaded ? tests : tests.filter((test) => by.includes(test.id))
}

function costOf(mutant, tests, reach) {
  return testsFor(mutant, tests, reach).reduce((sum, { ms }) => sum + ms, 0)
}

/** Mutants that the tests of a file reach, and the duration of each test. */
async function cover(run, file, lane) {
  const lines = []
  await runVitest(run, file, undefined, lane, (line) => void lines.push(line))
  const tests = []
  const reached = {}
  let between = []
  const note = (id, hits, test) => {
    const entry = (reached[id] ??= { by: [], hits: 0, isLoaded: false })
    entry.hits = Math.max(entry.hits, hits)
    if (test !== undefined && !entry.by.includes(test)) entry.by.push(test)
    return entry
  }
  // Mutants reached by a suite's hooks, or by one test's leftovers while the next began: both tests count.
  const noteBetween = (test) => between.forEach(([id, hits]) => note(id, hits, test))
  for (const line of lines) {
    if (line.loaded) for (const [id, hits] of line.loaded) note(id, hits).isLoaded = true
    if (line.between) {
      between = line.between
      if (tests.length > 0) noteBetween(tests.at(-1).id)
    }
    if (!line.test) continue
    if (line.isFailed) {
      console.log(`${file}: "${line.name}" fails without a mutant and is left out.`)
      continue
    }
    tests.push({ id: line.test, ms: line.ms })
    noteBetween(line.test)
    for (const [id, hits] of line.reached) note(id, hits, line.test)
  }
  if (tests.length === 0) throw new Error(`${file}: no test ran; .mutation/${run.name}-${lane}-output.txt may say why.`)
  return { tests, reached }
}

/** Tries as many of the mutants as one process can; a mutant that ends or blocks it is killed. */
async function runTests(run, file, orders, lane) {
  const results = []
  let current
  await runVitest(run, file, orders, lane, (line) => {
    if (line.started !== undefined) current = line.started
    if (line.ended === undefined) return line.limitMs
    current = undefined
    results.push({
      id: line.ended,
      isKilled: line.isKilled,
      by: `${line.by ?? ''}${line.isTimeout ? ' (timed out)' : ''}`,
    })
    return line.isTimeout ? 0 : undefined
  })
  if (current !== undefined) results.push({ id: current, isKilled: true, by: '(the process ended or hung)' })
  return results
}

/**
 * @param onLine called with each line that the runner writes; returns the time that the process has until the next
 * line
 */
async function runVitest({ name, build, mutants }, file, orders, lane, onLine) {
  const log = join(notes, `${name}-${lane}.log`)
  const task = join(notes, `${name}-${lane}-task.json`)
  writeFileSync(log, '')
  // A separate folder: a mutant of the code that removes dead processes' folders deletes everything beside them.
  const temporary = join(notes, `${name}-${lane}-tmp`)
  mkdirSync(temporary, { recursive: true })
  const address = `${pathToFileURL(join(root, build)).href}/`
  writeFileSync(task, JSON.stringify({ build: address, count: mutants.length, log, mutants: orders }))
  const child = spawn(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', file, '--config=scripts/mutation/vitest.config.mjs'],
    {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: temporary, STEMWORK_BUILD: build, STEMWORK_MUTATION: task },
    },
  )
  children.add(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => (output = (output + chunk).slice(-20_000)))
  let isOver = false
  // Processes left running by its tests would keep its pipes open.
  child.on('exit', () => kill(child))
  const over = new Promise((resolve) => child.on('close', resolve)).then(() => {
    isOver = true
    children.delete(child)
  })
  let read = 0
  // Loading takes a long time on a busy machine.
  let deadline = Date.now() + 1_800_000
  for (let isLast = false; ;) {
    const text = readFileSync(log, 'utf8')
    const end = text.lastIndexOf('\n') + 1
    for (const line of text.slice(read, end).split('\n').filter(Boolean)) {
      const limitMs = onLine(JSON.parse(line))
      if (limitMs !== undefined) deadline = Date.now() + limitMs
    }
    read = end
    if (isLast) break
    if (isOver) isLast = true
    else if (Date.now() > deadline) {
      kill(child)
      await over
      isLast = true
    } else await Promise.race([over, delay(50)])
  }
  writeFileSync(join(notes, `${name}-${lane}-output.txt`), output)
  rmSync(temporary, { recursive: true, force: true })
}

/** Kills the process and the processes that it started. */
function kill({ pid = 0 }) {
  try {
    if (pid > 0) process.kill(-pid, 'SIGKILL')
  } catch {
    // The process has just ended.
  }
}

/** Writes all mutants of the files into a copy of the build. */
function makeBuild(build, files) {
  const to = join(root, build)
  rmSync(to, { recursive: true, force: true })
  cpSync(join(root, 'build'), to, {
    recursive: true,
    filter: (path) => extname(path) === '' || /\.(js|wasm|json)$/.test(path),
  })
  const mutants = []
  const hash = createHash('sha256')
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8')
    const found = mutantsOf(file, text, mutants.length)
    hash.update(found.code)
    const { code } = transformSync(found.code, { loader: 'ts', format: 'esm', target: 'node20', sourcefile: file })
    const path = join(to, file.replace(/^src\//, '').replace(/\.ts$/, '.js'))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, code)
    mutants.push(...found.mutants.map((mutant) => ({ ...mutant, file, source: hashOf(text) })))
  }
  return { mutants, hash: hash.digest('hex').slice(0, 16) }
}

/** The key in survivors.json: the mutant's name without its file's folders, so that an explanation survives a move. */
function keyOf({ file, name }) {
  return name.slice(dirname(file).length + 1)
}

function report(folder, mutants, known, isWhole) {
  const survivors = mutants.filter(({ name }) => known.mutants[name].killedBy === undefined)
  const unexplained = survivors.filter((mutant) => !(keyOf(mutant) in explained))
  for (const { file, line, name } of unexplained) {
    const isReached = Object.keys(known.mutants[name].survived).length > 0
    console.log(`${isReached ? 'survived' : 'no test '} ${file}:${line} ${name.slice(file.length + 2)}`)
  }
  const byKey = new Map(mutants.map((mutant) => [keyOf(mutant), mutant]))
  const fileNames = new Set(mutants.map(({ file }) => basename(file)))
  for (const key of Object.keys(explained)) {
    const fileName = key.slice(0, key.indexOf(':'))
    if (!fileNames.has(fileName)) continue
    reported.add(key)
    if (!byKey.has(key)) console.log(`explained in survivors.json, but gone: ${key}`)
    else if (!survivors.includes(byKey.get(key))) console.log(`explained in survivors.json, but killed: ${key}`)
  }
  const killed = mutants.length - survivors.length
  const score = mutants.length === 0 ? 1 : killed / mutants.length
  console.log(
    `${folder}: ${mutants.length} mutants, ${killed} killed (${(100 * score).toFixed(1)} %), ` +
      `${survivors.length - unexplained.length} explained, ${unexplained.length} not explained`,
  )
  return unexplained.length === 0 && (!isWhole || score >= leastScore)
}

async function inParallel(items, work) {
  const rest = [...items]
  const lanes = Array.from({ length: Number(values.processes) }, async (_, lane) => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item, lane)
  })
  await Promise.all(lanes)
}

function filesOf(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .sort()
}

function readJson(path, otherwise) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : otherwise
}

function save({ path, known }) {
  writeFileSync(path, JSON.stringify(known))
}

function hashOf(data) {
  return createHash('sha256').update(data).digest('hex').slice(0, 16)
}
