import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { StemworkError } from '../../src/core/engine/errors.js'
import type { WorkOrder, WorkProgress } from '../../src/core/engine/ports/runner.js'
import { childArguments } from '../../src/core/engine/runner/child-arguments.js'
import { processRunner, type ProcessRunnerOptions } from '../../src/core/engine/runner/process-runner.js'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { eventually, isAlive, opened, orderTo, rejection, run, runUntil } from './run-order.js'

const runnerOf = (options: Partial<ProcessRunnerOptions> = {}) =>
  processRunner({
    resolve: () => {
      throw new Error('no order here needs the host')
    },
    ...options,
  })
const start = (options: Partial<ProcessRunnerOptions> = {}) => opened(runnerOf(options))

/** For tests in which a warm child behaves like a fresh one. */
const warm = runnerOf()

afterEach(() => void vi.unstubAllEnvs())
afterAll(() => warm.close())

const pidOf = (order: WorkOrder) => Number(readFileSync(join(order.directory, 'pid'), 'utf8'))
const acts = ({ stage }: WorkProgress) => stage === 'act'
const go = (order: WorkOrder) => writeFileSync(join(order.directory, 'go'), '')

describe('a run in a child process', () => {
  it('ends with outputs, details and progress up to 1', async () => {
    const seen: WorkProgress[] = []
    const order = orderTo('write')
    const result = await run(warm, order, { onProgress: (progress) => seen.push(progress) })
    expect(result.outputs).toEqual({
      report: {
        path: expect.stringContaining(order.directory),
        bytes: 5,
        contentType: 'text/plain',
        fileName: 'report.txt',
      },
    })
    expect(await readFile(result.outputs.report!.path, 'utf8')).toBe('hello')
    expect(result.details.pid).toBe(pidOf(order))
    expect(pidOf(order)).not.toBe(process.pid)
    expect(seen.at(-1)).toEqual({ stage: 'act', progress: 1 })
    expect(seen.map(({ progress }) => progress)).toEqual(seen.map(({ progress }) => progress).sort((a, b) => a - b))
  })

  it('reports a thousand steps of progress in few messages, the last among them', async () => {
    const seen: WorkProgress[] = []
    await run(warm, orderTo('ticks'), { onProgress: (progress) => seen.push(progress) })
    // `progress-throttle.test.ts` tests the exact intervals.
    expect(seen.length).toBeLessThan(500)
    expect(seen.at(-1)?.progress).toBe(1)
  })

  it('reports the processor time that it has used, even if it fails or is killed', async () => {
    const used = async (action: string, aborting = new AbortController()) => {
      let seconds = 0
      const end = await warm
        .run(orderTo(action), {
          signal: aborting.signal,
          onProgress: (progress) => acts(progress) && action === 'wait' && aborting.abort(),
          onUse: (now) => {
            expect(now).toBeGreaterThanOrEqual(seconds)
            seconds = now
          },
        })
        .catch((error: unknown) => error)
      return { seconds, failed: end instanceof Error }
    }
    for (const [action, failed] of [
      ['ticks', false],
      ['refuse', true],
      ['wait', true],
    ] as const) {
      const { seconds, failed: hasFailed } = await used(action)
      expect([action, hasFailed]).toEqual([action, failed])
      expect(seconds).toBeGreaterThan(0)
      expect(seconds).toBeLessThan(20)
    }
  })

  it.skipIf(process.platform !== 'linux')('counts the programs that it has run (only on Linux)', async () => {
    let seconds = 0
    const { signal } = new AbortController()
    await warm.run(orderTo('program'), { signal, onProgress: () => {}, onUse: (now) => (seconds = now) })
    expect(seconds).toBeGreaterThan(0.5)
  })

  it('keeps the child warm for the next order, and gives a fresh one after a kill', async () => {
    const runner = start()
    const orders = [orderTo('write'), orderTo('write'), orderTo('kill'), orderTo('write')]
    await run(runner, orders[0]!)
    await run(runner, orders[1]!)
    await rejection(run(runner, orders[2]!))
    await run(runner, orders[3]!)
    const [first, second, third, fourth] = orders.map(pidOf)
    expect(second).toBe(first)
    expect(third).toBe(first)
    expect(fourth).not.toBe(first)
    expect(runner.status()).toEqual({ slots: 1, busy: 0, restarts: 1 })
  })

  it('survives a listener that throws', async () => {
    const warnings: string[] = []
    const logger = {
      debug() {},
      info() {},
      error() {},
      warn: (_: object, message: string) => void warnings.push(message),
    }
    const onProgress = () => {
      throw new Error('listener')
    }
    const result = await run(start({ logger }), orderTo('write'), { onProgress })
    expect(result.outputs.report!.bytes).toBe(5)
    expect(warnings).toContain('a progress listener threw')
  })

  it('sees only what it needs of the environment and the Node arguments of the host', async () => {
    vi.stubEnv('STEMWORK_TEST_SEEN', 'yes')
    for (const name of ['STEMWORK_LINK_SECRET', 'STEMWORK_API_KEYS', 'STEMWORK_WEBHOOK_SECRET'])
      vi.stubEnv(name, 'secret')
    for (const name of ['STEMWORK_STORE', 'STEMWORK_QUEUE', 'STEMWORK_BLOBS', 'STEMWORK_MODEL_MIRROR'])
      vi.stubEnv(name, 'https://user:secret@127.0.0.1/files')
    vi.stubEnv('DATABASE_PASSWORD', 'secret')
    vi.stubEnv('NODE_OPTIONS', '--no-warnings')
    const { details } = await run(
      start({ environment: { EXTRA: 'given' }, nodeArguments: ['--max-old-space-size=300'] }),
      orderTo('environment'),
    )
    const environment = details.environment as Record<string, string>
    expect(environment).toMatchObject({ STEMWORK_TEST_SEEN: 'yes', EXTRA: 'given', PATH: process.env.PATH })
    expect(environment).toMatchObject({ MALLOC_ARENA_MAX: '1' })
    expect(Object.keys(environment).filter((name) => /PASSWORD|SECRET|KEY|NODE_OPTIONS|VITEST/.test(name))).toEqual([])
    expect(JSON.stringify(environment)).not.toContain('secret')
    expect(details.execArgv).toEqual([...childArguments, '--max-old-space-size=300'])
  })

  it('has a higher niceness than the host', async () => {
    const order = orderTo('write')
    const runner = start({ niceness: 7 })
    await run(runner, order)
    expect(getPriority(pidOf(order))).toBe(7)
  })

  it.skipIf(!existsSync('/proc/self/autogroup'))(
    'has a higher niceness than the host with autogroups (skipped where /proc/self/autogroup is absent)',
    async () => {
      const order = orderTo('write')
      await run(start({ niceness: 7 }), order)
      const groupOf = (pid: number | 'self') => readFileSync(`/proc/${pid}/autogroup`, 'utf8').trim()
      await eventually(() => /^\/autogroup-\d+ nice 7$/.test(groupOf(pidOf(order))))
      // The host's own group is empty if a container's first process started it outside any session of its own.
      expect(groupOf('self')).not.toMatch(/ nice 7$/)
    },
  )

  it('leaves Ctrl-C and stop signals to the host', async () => {
    const order = orderTo('wait')
    const result = await runUntil(
      start(),
      order,
      ({ progress }) => progress > 0.6,
      () => {
        for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pidOf(order), signal)
        setTimeout(() => go(order), 50)
      },
    )
    expect(result.outputs.report!.bytes).toBe(6)
  })
})

describe('failures that the workflow reports', () => {
  it('cross the process boundary with code, reason, message, details and cause', async () => {
    const error = await rejection(run(warm, orderTo('refuse')))
    expect(error).toBeInstanceOf(StemworkError)
    expect(error).toMatchObject({
      code: 'BAD_INPUT',
      reason: 'no_audio',
      message: 'The file has no audio.',
      retryable: false,
      details: { field: 'inputUrl' },
      cause: { message: 'probe said no', stack: expect.stringContaining('stages.mjs') },
    })
  })

  it.each(['throw', 'late', 'reject'])(
    'by an unknown error (%s) end as INTERNAL_ERROR without its text, and the next order runs',
    async (action) => {
      const error = await rejection(run(warm, orderTo(action)))
      expect(error).toMatchObject({ code: 'INTERNAL_ERROR', retryable: true, cause: expect.any(Error) })
      expect((error as Error).message).not.toMatch(/secret|outside|forgotten/)
      expect((await run(warm, orderTo('write'))).outputs.report!.bytes).toBe(5)
    },
  )

  it.each(['unreadable', 'unreadableLater'])(
    'by an error whose text cannot be read (%s) say so to the operator',
    async (action) => {
      const cause = { message: expect.stringContaining('unreadable error') }
      expect(await rejection(run(warm, orderTo(action)))).toMatchObject({ code: 'INTERNAL_ERROR', cause })
    },
  )

  it.each([
    ['nothing', '"report"'],
    ['link', '"report"'],
    ['traverse', '"../report"'],
    ['undeclared', '"other"'],
  ])('as an output that is missing or not allowed (%s) name it', async (action, name) => {
    expect(await rejection(run(warm, orderTo(action)))).toMatchObject({
      code: 'INTERNAL_ERROR',
      message: expect.stringContaining(name),
    })
  })

  it('as details that are not JSON end as INTERNAL_ERROR', async () => {
    expect(await rejection(run(warm, orderTo('bigint')))).toMatchObject({
      code: 'INTERNAL_ERROR',
      cause: { message: expect.stringContaining('BigInt') },
    })
  })

  it.each([
    ['cannot make it', { settings: { broken: true } }],
    ['is not there', { module: new URL('./fixtures/absent.mjs', import.meta.url).href }],
    ['exports no function', { module: new URL('../../build/core/engine/errors.js', import.meta.url).href }],
  ])(
    'as a workflow whose module %s say so without paths, and the next order gets a fresh child',
    async (_, changes) => {
      const runner = start()
      const error = await rejection(run(runner, orderTo('write', changes)))
      expect(error).toMatchObject({
        code: 'INTERNAL_ERROR',
        message: expect.stringContaining('could not be loaded'),
        cause: expect.any(Error),
      })
      expect((error as Error).message).not.toContain('/')
      expect((await run(runner, orderTo('write'))).outputs.report!.bytes).toBe(5)
      expect(runner.status().restarts).toBe(1)
    },
  )
})

describe('a child that dies', () => {
  it.each([
    ['is killed from outside', 'wait', { signal: 'SIGKILL' }],
    ['aborts', 'abort', { signal: 'SIGABRT' }],
    ['exits', 'exit', { exitCode: 0 }],
    ['hangs up', 'disconnect', { signal: 'SIGKILL' }],
  ])('because it %s ends the run as worker_lost, and the next order runs', async (_, action, details) => {
    const runner = start()
    const order = orderTo(action)
    const error = await rejection(
      runUntil(
        runner,
        order,
        ({ progress }) => action === 'wait' && progress > 0.6,
        () => process.kill(pidOf(order), 'SIGKILL'),
      ),
    )
    expect(error).toMatchObject({
      code: 'INTERNAL_ERROR',
      reason: 'worker_lost',
      retryable: true,
      details,
      message: expect.stringContaining('ended unexpectedly'),
    })
    expect((await run(runner, orderTo('write'))).outputs.report!.bytes).toBe(5)
  })

  it('or that the system does not start ends the run with what to check, and the next order runs', async () => {
    const runner = start()
    const { execPath } = process
    process.execPath = '/no/such/node'
    try {
      expect(await rejection(run(runner, orderTo('write')))).toMatchObject({
        code: 'INTERNAL_ERROR',
        reason: 'worker_lost',
        retryable: true,
        message: expect.stringContaining('could not start a process'),
        cause: { message: expect.stringMatching(/ENOENT.*limit of processes/), cause: { code: 'ENOENT' } },
      })
    } finally {
      process.execPath = execPath
    }
    expect((await run(runner, orderTo('write'))).outputs.report!.bytes).toBe(5)
  })

  it('because it runs out of memory ends the run as worker_lost, not retryable, with its last output', async () => {
    const error = await rejection(run(start({ nodeArguments: ['--max-old-space-size=40'] }), orderTo('grow')))
    expect(error).toMatchObject({
      code: 'INTERNAL_ERROR',
      reason: 'worker_lost',
      retryable: false,
      message: expect.stringContaining('out of memory'),
      cause: { message: expect.stringContaining('heap') },
    })
  })

  it('because it takes more memory outside the heap than its stage allows ends in the same way', async () => {
    const runner = start()
    expect(await rejection(run(runner, orderTo('swell')))).toMatchObject({
      code: 'INTERNAL_ERROR',
      reason: 'worker_lost',
      retryable: false,
      message: expect.stringContaining('out of memory'),
      cause: { message: expect.stringContaining('more memory than the') },
    })
    expect((await run(runner, orderTo('write'))).outputs.report!.bytes).toBe(5)
  })

  it('after megabytes of output on stderr leaves only the end of it', async () => {
    const error = await rejection(run(start(), orderTo('noise')))
    const { message } = (error as Error).cause as Error
    expect(message).toContain('the last line')
    expect(message.length).toBeLessThan(10_000)
    expect((error as Error).message).not.toContain('xxx')
  })

  it('between two orders is replaced unnoticed', async () => {
    const runner = start()
    const order = orderTo('write')
    await run(runner, order)
    process.kill(pidOf(order), 'SIGKILL')
    await eventually(() => runner.status().restarts === 1)
    expect((await run(runner, orderTo('write'))).outputs.report!.bytes).toBe(5)
  })

  it('because it is idle for long is started again for the next order, which does not count as a restart', async () => {
    const runner = start({ idleMs: 20 })
    const orders = [orderTo('write'), orderTo('write')]
    await run(runner, orders[0]!)
    await eventually(() => !isAlive(pidOf(orders[0]!)))
    await run(runner, orders[1]!)
    expect(pidOf(orders[1]!)).not.toBe(pidOf(orders[0]!))
    expect(runner.status().restarts).toBe(0)
  })

  it('because it exits while it starts is a failure of the set-up, with its last output in the cause', async () => {
    const lastWords = 'data:text/javascript,process.stderr.write("no such loader");process.exit(3)'
    const runner = start({ nodeArguments: ['--import', lastWords] })
    expect(await rejection(run(runner, orderTo('write')))).toMatchObject({
      code: 'RUNNER_UNAVAILABLE',
      retryable: false,
      message: expect.stringContaining('exited with code 3'),
      cause: { message: expect.stringContaining('no such loader') },
    })
  })

  it('because it is not ready in time ends the run with a retryable failure', async () => {
    const neverReady = 'data:text/javascript,setInterval(()=>{},1000);await new Promise(()=>{})'
    const runner = start({ startTimeoutMs: 300, nodeArguments: ['--import', neverReady] })
    expect(await rejection(run(runner, orderTo('write')))).toMatchObject({
      code: 'INTERNAL_ERROR',
      retryable: true,
      cause: { message: expect.stringContaining('300 ms') },
    })
  })
})

describe('an abort', () => {
  it('ends an endless loop and leaves a working runner', async () => {
    const runner = start()
    const order = orderTo('spin')
    const aborting = new AbortController()
    const reason = new StemworkError('CANCELED', 'Canceled.')
    const running = runUntil(runner, order, acts, () => aborting.abort(reason), aborting.signal)
    expect(await rejection(running)).toBe(reason)
    expect(isAlive(pidOf(order))).toBe(false)
    expect((await run(runner, orderTo('write'))).outputs.report!.bytes).toBe(5)
  })

  it('ends the programs that the child has started, too', async () => {
    const order = orderTo('helper')
    const aborting = new AbortController()
    await rejection(
      runUntil(
        start(),
        order,
        ({ progress }) => progress > 0.6,
        () => aborting.abort(),
        aborting.signal,
      ),
    )
    const helper = Number(readFileSync(join(order.directory, 'helper'), 'utf8'))
    await eventually(() => !isAlive(helper))
  })

  it('before the run starts nothing', async () => {
    const runner = start()
    const reason = new Error('too late')
    expect(await rejection(run(runner, orderTo('write'), { signal: AbortSignal.abort(reason) }))).toBe(reason)
  })

  it('while the order waits for a slot ends only the waiting', async () => {
    const runner = start()
    const busy = orderTo('wait')
    const first = run(runner, busy)
    const aborting = new AbortController()
    const second = rejection(run(runner, orderTo('write'), { signal: aborting.signal }))
    const third = run(runner, orderTo('write'))
    expect(runner.status().busy).toBe(1)
    aborting.abort(new Error('changed my mind'))
    expect(await second).toBe(aborting.signal.reason)
    go(busy)
    expect((await first).outputs.report!.bytes).toBe(6)
    expect((await third).outputs.report!.bytes).toBe(5)
  })
})

describe('slots', () => {
  it('run orders side by side, each in its own child', async () => {
    const runner = start({ slots: 2 })
    const orders = [orderTo('wait'), orderTo('wait')]
    let reached = 0
    const runs = orders.map((order) =>
      runUntil(
        runner,
        order,
        ({ progress }) => progress > 0.6,
        () => void reached++,
      ),
    )
    await eventually(() => reached === 2, 20_000)
    expect(runner.status()).toEqual({ slots: 2, busy: 2, restarts: 0 })
    orders.forEach(go)
    await Promise.all(runs)
    expect(pidOf(orders[0]!)).not.toBe(pidOf(orders[1]!))
    expect(runner.status().busy).toBe(0)
  })

  it.each([{ slots: 0 }, { slots: 1.5 }, { niceness: 99 }, { startTimeoutMs: -1 }])(
    'and the other numbers are validated: %j',
    (options) => {
      expect(() => start(options)).toThrow(
        expect.objectContaining({
          code: 'INVALID_OPTIONS',
          message: expect.stringContaining(Object.keys(options)[0]!),
        }),
      )
    },
  )
})

describe('close', () => {
  it('rejects the runs in progress and in waiting, ends the children and refuses new orders', async () => {
    const runner = start()
    const order = orderTo('spin')
    let waiting: Promise<unknown> = Promise.resolve()
    const running = runUntil(runner, order, acts, () => {
      waiting = rejection(run(runner, orderTo('write')))
      void runner.close()
    })
    expect(await rejection(running)).toMatchObject({ code: 'SHUTTING_DOWN', retryable: true })
    expect(await waiting).toMatchObject({ code: 'SHUTTING_DOWN' })
    await runner.close()
    expect(isAlive(pidOf(order))).toBe(false)
    expect(await rejection(run(runner, orderTo('write')))).toMatchObject({ code: 'SHUTTING_DOWN' })
  })

  it('has ended an idle child when it returns', async () => {
    const runner = start()
    const order = orderTo('write')
    await run(runner, order)
    await runner.close()
    expect(isAlive(pidOf(order))).toBe(false)
  })
})

describe('an order without a module', () => {
  it("runs in the host's process, with the workflow that the host knows", async () => {
    const workflow = defineWorkflow({
      id: 'test/light',
      name: 'Light',
      description: '',
      params: z.unknown(),
      outputs: {},
      stages: [{ name: 'tell', run: async ({ detail }) => detail('pid', process.pid) }],
    })
    const asked: string[] = []
    const runner = start({ resolve: (id) => (asked.push(id), workflow) })
    const { details } = await run(runner, orderTo('', { module: null, workflow: 'test/light' }))
    expect(details).toEqual({ pid: process.pid })
    expect(asked).toEqual(['test/light'])
  })
})
