// The test runner of `run.mjs`: runs a test file in one process, first unchanged to record which tests reach which
// mutants, then once for each mutant with the tests that reach it. `globalThis.$mutant` says which mutant is active.
import { appendFileSync, readFileSync } from 'node:fs'
import { register } from 'node:module'
import { startTests } from '@vitest/runner'
import fc from 'fast-check'
import { TestRunner, vi } from 'vitest'

const { build, count, log, mutants } = JSON.parse(readFileSync(process.env.STEMWORK_MUTATION, 'utf8'))

/** Incremented to reload the build, for mutants in code that runs when it is loaded. */
const generation = new Int32Array(new SharedArrayBuffer(4))
register('./generations.mjs', import.meta.url, { data: { build, generation } })

// One counterexample is enough: it need not be shrunk.
fc.configureGlobal({ endOnFailure: true })

const none = -1
const state = (globalThis.$mutant = {
  id: none,
  hits: 0,
  maxHits: Infinity,
  /** Hits of each mutant; undefined while hits are not counted. */
  reached: mutants ? undefined : new Uint32Array(count),
  is(id) {
    if (this.reached) this.reached[id]++
    if (id !== this.id) return false
    if (++this.hits > this.maxHits) throw new Error('This mutant does not end.')
    return true
  },
})

export default class MutationRunner extends TestRunner {
  #isNested = false
  #failedAt
  #wanted = []

  importFile(path, source) {
    // The tests of a file are collected again for each mutant.
    const { evaluatedModules } = this.workerState
    if (generation[0] > 0) evaluatedModules.clear()
    else if (evaluatedModules.getModuleById(path))
      evaluatedModules.invalidateModule(evaluatedModules.getModuleById(path))
    return super.importFile(path, source)
  }

  async onBeforeRunFiles(files) {
    if (!mutants) return write({ loaded: takeReached() })
    for (const file of files) select(file, this.#isNested ? this.#wanted : [])
    if (!this.#isNested) for (const mutant of mutants) await this.#tryOut(mutant, files[0].filepath)
  }

  async onBeforeRunTask(test) {
    if (mutants && this.#failedAt) test.mode = 'skip'
    if (!mutants) write({ between: takeReached() })
    await super.onBeforeRunTask(test)
  }

  onAfterRunTask(test) {
    super.onAfterRunTask(test)
    const isFailed = test.result?.state === 'fail'
    if (isFailed) this.#failedAt ??= test
    if (!mutants)
      write({ test: test.id, name: nameOf(test), ms: test.result?.duration ?? 0, isFailed, reached: takeReached() })
  }

  onAfterRunFiles() {
    super.onAfterRunFiles()
    if (!mutants) write({ between: takeReached() })
  }

  async #tryOut(mutant, filepath) {
    write({ started: mutant.id, limitMs: mutant.limitMs })
    this.#isNested = true
    this.#failedAt = undefined
    this.#wanted = mutant.tests
    const { onTaskUpdate, onCollected, config } = this
    this.onTaskUpdate = async () => {}
    this.onCollected = async () => {}
    this.config = { ...config, testTimeout: mutant.timeoutMs, hookTimeout: mutant.timeoutMs }
    if (mutant.isStatic) Atomics.add(generation, 0, 1)
    Object.assign(state, { id: mutant.id, hits: 0, maxHits: mutant.maxHits })
    process.env.STEMWORK_MUTANT = String(mutant.id)
    const [file] = await startTests([filepath], this)
    const failure = failureIn(file)
    const by = failure && nameOf(this.#failedAt)
    // True even where the code catches the error that ends the loop.
    const isEndless = state.hits > state.maxHits
    Object.assign(state, { id: none, maxHits: Infinity })
    // Modules that were loaded under this mutant must not be used for the next.
    if (mutant.isStatic) Atomics.add(generation, 0, 1)
    delete process.env.STEMWORK_MUTANT
    vi.useRealTimers()
    vi.restoreAllMocks()
    Object.assign(this, { onTaskUpdate, onCollected, config })
    this.#isNested = false
    this.#failedAt = undefined
    const isTimeout = failure !== undefined && /timed out in \d+ms/.test(failure.message)
    write({ ended: mutant.id, isKilled: failure !== undefined || isEndless, isTimeout, by })
    // The work that timed out continues and would disturb the next mutant.
    if (isTimeout) process.kill(process.pid, 'SIGKILL')
  }
}

/** Runs only these tests, and only the hooks of suites that contain one of them. */
function select(suite, tests) {
  let hasAny = false
  for (const task of suite.tasks) {
    if (task.type === 'suite') hasAny = select(task, tests) || hasAny
    else if (tests.includes(task.id)) hasAny ||= task.mode === 'run'
    else task.mode = 'skip'
  }
  if (!hasAny && suite.result?.state !== 'fail') suite.mode = 'skip'
  return hasAny
}

function failureIn(task) {
  if (task.result?.state === 'fail' && task.result.errors?.length) return task.result.errors[0]
  for (const inner of task.tasks ?? []) {
    const failure = failureIn(inner)
    if (failure) return failure
  }
  return undefined
}

function nameOf(task) {
  return !task
    ? 'the file itself'
    : task.suite
      ? `${nameOf(task.suite)} > ${task.name}`.replace(/^the file itself > /, '')
      : task.name
}

/** The mutants reached since the last call, with their hits. */
function takeReached() {
  const reached = []
  state.reached.forEach((hits, id) => hits > 0 && reached.push([id, hits]))
  state.reached.fill(0)
  return reached
}

function write(line) {
  appendFileSync(log, `${JSON.stringify(line)}\n`)
}
