import { EventEmitter, once } from 'node:events'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { memoryJobs } from '../../../src/adapters/memory.js'
import type { EngineParts } from '../../../src/core/engine/engine.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { resolveEngineOptions } from '../../../src/core/engine/options.js'
import { StepRun } from '../../../src/core/engine/runner/execute-steps.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import type { RunContext, StepFile } from '../../../src/core/engine/workflow/steps.js'
import { defineWorkflow } from '../../../src/core/engine/workflow/workflow.js'
import { temporaryFolder } from '../../temporary-folder.js'
import { keys, stepsWorkflow, testEngine, textOf } from '../harness.js'

/** An engine whose workflow is this function, which can be replaced between attempts. */
function engineOf(first: Run, policy = {}, parts: Partial<EngineParts> = {}) {
  const code = { run: first, version: '1' }
  const workflow = stepsWorkflow((context) => code.run(context), {
    outputs: { text: { fileName: 'text.txt', contentType: 'text/plain', optional: true } },
    policy,
  })
  const current = {
    ...workflow,
    get version() {
      return code.version
    },
  }
  return { ...testEngine(current, {}, { runner: inlineRunner({ resolve: () => current }), ...parts }), code }
}
type Run = (context: RunContext) => Promise<{ text?: StepFile } | void>

describe('a finished step', () => {
  test('is never repeated: a later attempt gets its value and its files', async () => {
    const ran: string[] = []
    let attempt = 0
    const { engine, submit, until, parts } = engineOf(async ({ step }) => {
      attempt++
      const made = await step.run('make', async ({ file }) => {
        ran.push('make')
        const text = file('made.txt')
        await writeFile(text.path, 'kept')
        return { text, at: new Date(0), list: [1, undefined] }
      })
      expect(made).toMatchObject({ at: '1970-01-01T00:00:00.000Z', list: [1, null] })
      const { copy } = await step.run('copy', async ({ file }) => {
        ran.push('copy')
        if (attempt === 1) throw new Error('not yet')
        const copied = file('copy.txt')
        await writeFile(copied.path, `${await readFile(made.text.path, 'utf8')}!`)
        return { copy: copied }
      })
      return { text: copy }
    })
    await engine.start()
    const job = await until((await submit()).id, 'SUCCEEDED')
    expect(ran).toEqual(['make', 'copy', 'copy'])
    expect(await textOf(parts.blobs, job.outputs?.text?.key ?? '')).toBe('kept!')
    expect(job.steps).toMatchObject([
      { name: 'make', state: 'done', attempts: 1, files: { 'made.txt': { bytes: 4 } }, value: null },
      { name: 'copy', state: 'done', attempts: 2, files: { 'copy.txt': { bytes: 5 } }, error: null },
    ])
    expect(await keys(parts.blobs, ['checkpoints/'])).toEqual([])
    await engine.close()
  })

  test('returns what a client sent as it is, even if it looks like the mark of a file', async () => {
    const sent = { $file: 'constructor' }
    const { engine, submit, until } = engineOf(async ({ step }) => {
      expect(await step.run('read', async () => ({ sent }))).toEqual({ sent })
    })
    await engine.start()
    expect(await until((await submit()).id, 'SUCCEEDED', 'FAILED')).toMatchObject({ status: 'SUCCEEDED' })
    await engine.close()
  })

  test('counts for its share of the progress, also while it runs', async () => {
    const reported: number[] = []
    const run = new StepRun({
      jobId: 'job',
      version: '1',
      kept: [],
      limits: resolveEngineOptions({}).limits,
      directory: temporaryFolder(),
      signal: new AbortController().signal,
      detail: () => {},
      report: (_, progress) => void reported.push(progress),
    })
    await run.run('first', async ({ progress }) => progress(0.5), { share: 0.02 })
    await run.run('second', async ({ progress }) => progress(0.5), { share: 0.5 })
    expect(reported.map((progress) => Math.round(100 * progress))).toEqual([0, 1, 2, 2, 27, 52])
  })

  test('counts as progress, which resets the count of attempts; one that fails is shown with its error', async () => {
    const failures = { one: 1, two: 1, three: 2 }
    const { engine, submit, until } = engineOf(
      async ({ step }) => {
        for (const name of ['one', 'two', 'three'] as const)
          await step.run(name, async () => {
            if (failures[name]-- > 0) throw new Error('a word of the workflow')
          })
      },
      { maxAttempts: 2 },
    )
    await engine.start()
    const job = await until((await submit()).id, 'FAILED', 'SUCCEEDED')
    expect(job.status).toBe('FAILED')
    expect(job.steps).toMatchObject([
      { name: 'one', state: 'done', attempts: 2 },
      { name: 'two', state: 'done', attempts: 2 },
      { name: 'three', state: 'failed', attempts: 2, error: { code: 'INTERNAL_ERROR' } },
    ])
    expect(job.steps[2]?.error?.message).not.toContain('a word of the workflow')
    expect((await engine.retry(job.id))?.steps).toHaveLength(3)
    expect((await until(job.id, 'SUCCEEDED')).steps[2]).toMatchObject({ state: 'done', attempts: 3, error: null })
    await engine.close()
  })

  test('of another version of the workflow is not used, and one that the function lacks is an error', async () => {
    const ran: string[] = []
    const made = engineOf(async ({ step }) => {
      await step.run('one', async () => void ran.push('one'))
      throw new StemworkError('INTERNAL_ERROR', 'Stop.')
    })
    const { engine, submit, until, code } = made
    await engine.start()
    const { id } = await until((await submit()).id, 'FAILED')
    code.run = async ({ step }) => void (await step.run('other', async () => void ran.push('other')))
    const retried = async () => {
      await engine.retry(id)
      return await until(id, 'FAILED', 'SUCCEEDED')
    }
    expect((await retried()).failure).toMatch(/steps one, which this one did not reach.*another `version`/s)
    code.version = '2'
    expect((await retried()).status).toBe('SUCCEEDED')
    expect(ran).toEqual(['one', 'other', 'other'])
    await engine.close()
  })
})

test('names, values and files of steps are checked, with a message for the operator', async () => {
  const failing = async (run: Run) => {
    const { engine, submit, until } = engineOf(run)
    await engine.start()
    const { failure, attempts } = await until((await submit()).id, 'FAILED')
    await engine.close()
    expect(attempts).toBe(1)
    return failure
  }
  const nothing = async () => {}
  expect(await failing(async ({ step }) => step.run('a b', nothing))).toContain('A step has the name "a b"')
  expect(
    await failing(async ({ step }) => {
      await step.run('a', nothing)
      await step.run('a', nothing)
    }),
  ).toContain('Two steps have the name "a"')
  expect(await failing(async ({ step }) => void (await step.run('a', async () => 'x'.repeat(1_000_001))))).toContain(
    'write more into a file',
  )
  const options = { retries: 3 } as object
  expect(await failing(async ({ step }) => step.run('a', nothing, options))).toContain(
    'The step "a" has the option "retries". Expected maxAttempts, retryDelayMs,',
  )
  expect(await failing(async ({ step }) => void (await step.run('a', async () => 5n)))).toContain(
    'The step "a" returned a value that is not JSON, which cannot be kept: TypeError: Do not know how to serialize',
  )
  expect(await failing(async ({ step }) => void (await step.run('a', async ({ file }) => file('../x'))))).toContain(
    '"../x"',
  )
  expect(await failing(async ({ step }) => void (await step.run('a', async ({ file }) => file('x'))))).toContain(
    'has not written it',
  )
  expect(
    await failing(async ({ step }) => {
      const one = await step.run('a', async ({ file }) => {
        await writeFile(file('x').path, 'x')
        return file('x')
      })
      await step.run('b', async () => one)
    }),
  ).toContain('returned x of another step')
})

test('parallel steps end before the first failure is reported, and are kept', async () => {
  const ran: string[] = []
  const { engine, submit, until } = engineOf(async ({ step }) => {
    const values = await step.all({
      slow: async () => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        ran.push('slow')
        return 1
      },
      failing: async () => {
        ran.push('failing')
        if (ran.length < 3) throw new Error('once')
        return 2
      },
    })
    expect(values).toEqual({ slow: 1, failing: 2 })
  })
  await engine.start()
  await until((await submit()).id, 'SUCCEEDED')
  expect(ran).toEqual(['failing', 'slow', 'failing'])
  await engine.close()
})

describe('a step that the function does not await does not end the process of the host', () => {
  /** Unhandled rejections, which would end the process. */
  const rejections: unknown[] = []
  const note = (reason: unknown) => void rejections.push(reason)
  beforeEach(() => void process.on('unhandledRejection', note))
  afterEach(async () => {
    // Rejections are reported once the microtasks are done.
    await new Promise(setImmediate)
    process.off('unhandledRejection', note)
    expect(rejections.splice(0)).toEqual([])
  })

  test('if it fails after the function has ended', async () => {
    let fail = () => {}
    const failure = new Promise((_, reject) => (fail = () => reject(new Error('late'))))
    const { engine, submit, until } = engineOf(async ({ step }) => {
      void step.run('late', () => failure)
      await step.run('now', async () => {})
    })
    await engine.start()
    await until((await submit()).id, 'SUCCEEDED')
    fail()
    await engine.close()
  })

  test('if it is stopped by the cancel that stops the step before it', async () => {
    const events = new EventEmitter()
    const { engine, submit, until } = engineOf(async ({ step }) => {
      const works = ['a', 'b'].map((name) =>
        step.run(name, async ({ signal }) => {
          events.emit(name)
          await once(signal, 'abort')
        }),
      )
      for (const work of works) await work
    })
    await engine.start()
    const running = once(events, 'b')
    const { id } = await submit()
    await running
    await engine.cancel(id)
    await until(id, 'FAILED')
    await engine.close()
  })
})

test('a step is tried again in place and has a time limit of its own, if it says so', async () => {
  let tries = 0
  const { engine, submit, until } = engineOf(async ({ step }) => {
    const options = { maxAttempts: 2, retryDelayMs: 1, timeoutMs: 50 }
    await step.run('hang', async () => (++tries === 1 ? await new Promise<never>(() => {}) : undefined), options)
  })
  await engine.start()
  const job = await until((await submit()).id, 'SUCCEEDED')
  expect(job).toMatchObject({ token: 1, steps: [{ name: 'hang', attempts: 2, state: 'done' }] })
  await engine.close()
})

describe('a wait', () => {
  test('for a time holds no slot, and neither it nor what came before is repeated', async () => {
    const ran: string[] = []
    const { engine, submit, until, events } = engineOf(async ({ step }) => {
      await step.run('before', async () => void ran.push('before'))
      await step.sleep('pause', 30)
      await step.run('after', async () => void ran.push('after'))
    })
    await engine.start()
    const { id } = await submit()
    const waiting = await until(id, 'QUEUED')
    expect(waiting.lease).toBe(null)
    const job = await until(id, 'SUCCEEDED')
    expect(ran).toEqual(['before', 'after'])
    expect(job.history.map(({ outcome }) => outcome)).toEqual(['suspended', 'succeeded'])
    expect(events).toContain('job.requeued')
    await engine.close()
  })

  test.each([-60_000, 60_000])('lasts as long where the clock of the store is %i ms ahead', async (aheadMs) => {
    const jobs = memoryJobs({ clock: () => Date.now() + aheadMs })
    const { engine, submit, until } = engineOf(async ({ step }) => void (await step.sleep('pause', 100)), {}, { jobs })
    await engine.start()
    const { id } = await submit()
    const { steps } = await until(id, 'QUEUED')
    expect(Math.abs((steps[0]?.until ?? 0) - (Date.now() + aheadMs))).toBeLessThan(10_000)
    const { history } = await until(id, 'SUCCEEDED')
    expect(history.map(({ outcome }) => outcome)).toEqual(['suspended', 'succeeded'])
    await engine.close()
  })

  test.each([-120_000, 120_000])('is not over early where the clock of the store is %i ms ahead', async (aheadMs) => {
    const jobs = memoryJobs({ clock: () => Date.now() + aheadMs })
    const { engine, submit, until } = engineOf(
      async ({ step }) =>
        void (await Promise.all([step.sleep('pause', 60_000), step.waitFor('go', { timeoutMs: 60_000 })])),
      {},
      { jobs },
    )
    await engine.start()
    const { id } = await submit()
    await until(id, 'QUEUED')
    await engine.sendEvent(id, 'go', 1)
    const history = async () => (await engine.get(id))?.history.map(({ outcome }) => outcome)
    await expect.poll(history, { timeout: 30_000 }).toEqual(['suspended', 'suspended'])
    expect(await engine.get(id)).toMatchObject({ steps: [{ name: 'pause', state: 'waiting' }, { state: 'done' }] })
    await engine.close()
  })

  test.each([-3_600_000, 3_600_000])('lasts as long where the clock of the node is set by %i ms', async (byMs) => {
    const { now } = Date
    const jobs = memoryJobs({ clock: now })
    const { engine, submit, until } = engineOf(
      async ({ step }) => {
        Date.now = () => now() + byMs
        await step.sleep('pause', 60_000)
      },
      {},
      { jobs },
    )
    onTestFinished(() => void (Date.now = now))
    await engine.start()
    const { steps } = await until((await submit()).id, 'QUEUED')
    expect(Math.abs((steps[0]?.until ?? 0) - now() - 60_000)).toBeLessThan(10_000)
    await engine.close()
  })

  test('for an event ends with its value, even if it came before; the first one counts', async () => {
    const { engine, submit, until } = engineOf(async ({ step, detail }) => {
      detail('early', await step.waitFor('early', { timeoutMs: 60_000 }))
      detail('approval', await step.waitFor<{ by: string }>('approval', { timeoutMs: 60_000 }))
    })
    const { id } = await submit()
    expect(await engine.sendEvent(id, 'early', [1])).toBeDefined()
    expect(await engine.sendEvent(id, 'early', [2])).toBeUndefined()
    await engine.start()
    await new Promise<void>((resolve) => engine.on('job.requeued', () => resolve()))
    expect(await engine.get(id)).toMatchObject({ status: 'QUEUED', attempts: 0, lease: null })
    await engine.sendEvent(id, 'approval', { by: 'Ann' })
    const job = await until(id, 'SUCCEEDED')
    expect(job.details).toEqual({ early: [1], approval: { by: 'Ann' } })
    expect(await engine.sendEvent(id, 'approval', 1)).toBeUndefined()
    expect(await engine.sendEvent('no-job', 'approval', 1)).toBeUndefined()
    await expect(engine.sendEvent(id, 'a b', 1)).rejects.toMatchObject({ code: 'INVALID_PARAMS' })
    await engine.close()
  })

  test.each(['', '1'])('takes an event only where it waits, in version "%s" of a workflow', async (version) => {
    const { engine, submit, until, code } = engineOf(async ({ step, detail }) =>
      detail('worked', await step.run('work', async () => 'done')),
    )
    code.version = version
    const { id } = await submit()
    await engine.sendEvent(id, 'work', 'an event')
    await engine.sendEvent(id, 'elsewhere', 'another')
    await engine.start()
    const { details, steps } = await until(id, 'SUCCEEDED')
    expect(details).toEqual({ worked: 'done' })
    expect(steps.find(({ name }) => name === 'work')).toMatchObject({ version, attempts: 1 })
    await engine.close()
  })

  test('for an event that does not come ends at its time limit; a waiting job can be canceled', async () => {
    const { engine, submit, until } = engineOf(async ({ step, detail }) => {
      detail('came', (await step.waitFor('event', { timeoutMs: 20 })) !== undefined)
      await step.waitFor('never', { timeoutMs: 3_600_000 })
    })
    await engine.start()
    const { id } = await submit()
    const isWaiting = new Promise<void>((resolve) =>
      engine.on('job.requeued', ({ job }) => job.steps.some(({ name }) => name === 'never') && resolve()),
    )
    await isWaiting
    expect((await engine.get(id))?.steps).toMatchObject([
      { name: 'event', state: 'done' },
      { name: 'never', state: 'waiting' },
    ])
    await engine.cancel(id)
    expect(await until(id, 'FAILED')).toMatchObject({ error: { code: 'CANCELED' } })
    await engine.close()
  })
})

test('a workflow has stages or a function of steps, not both or none', () => {
  const rest = { id: 'a', name: 'A', description: '', params: z.object({}), outputs: {} }
  const message = expect.stringContaining('expected either stages or run')
  expect(() => defineWorkflow(rest)).toThrow(expect.objectContaining({ message }))
  const both = { ...rest, stages: [{ name: 'a', run: async () => {} }], run: async () => {} }
  expect(() => defineWorkflow(both)).toThrow(expect.objectContaining({ message }))
})

test('two outputs with one file name have a file each', async () => {
  const text = { fileName: 'text.txt', contentType: 'text/plain' }
  const workflow = stepsWorkflow(
    async ({ step }) =>
      await step.run('make', async ({ file }) => {
        const made = { one: file('1.txt'), two: file('2.txt') }
        for (const { name, path } of Object.values(made)) await writeFile(path, name)
        return made
      }),
    { outputs: { one: text, two: text } },
  )
  const { engine, submit, until, parts } = testEngine(
    workflow,
    {},
    { runner: inlineRunner({ resolve: () => workflow }) },
  )
  await engine.start()
  const { outputs } = await until((await submit()).id, 'SUCCEEDED')
  expect(await textOf(parts.blobs, outputs?.one?.key ?? '')).toBe('1.txt')
  expect(await textOf(parts.blobs, outputs?.two?.key ?? '')).toBe('2.txt')
  await engine.close()
})

test('no file of the host becomes a result: neither by a path of a client nor by a link', async () => {
  for (const [run, reason] of [
    [async () => ({ text: { name: 'x', path: '/etc/hosts' } }), 'something other than a file of a step'],
    [async () => ({ text: '/etc/hosts' as unknown as StepFile }), 'something other than a file of a step'],
    [
      async ({ step }) => ({
        text: await step.run('a', async ({ file }) => {
          const made = file('x')
          await symlink('/etc/hosts', made.path)
          return made
        }),
      }),
      'has not written it',
    ],
  ] satisfies [Run, string][]) {
    const { engine, submit, until, parts } = engineOf(run)
    await engine.start()
    const { failure } = await until((await submit()).id, 'FAILED')
    await engine.close()
    expect(failure).toContain(reason)
    expect(await keys(parts.blobs, ['results/', 'checkpoints/'])).toEqual([])
  }
})
