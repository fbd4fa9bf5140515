import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { AttemptCheckpoint } from '../../../src/core/engine/dispatch/attempt/attempt-checkpoint.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import type { RunContext } from '../../../src/core/engine/workflow/steps.js'
import { defineWorkflow, type StageContext } from '../../../src/core/engine/workflow/workflow.js'
import { gate, recordingLogger, stepsWorkflow, testEngine, textWorkflow } from '../harness.js'

/** Counts to its param `units`, and keeps its count as soon as a checkpoint is due. */
function countWorkflow(onUnit: (unit: number, context: StageContext) => Promise<unknown>) {
  const done: string[] = []
  const workflow = defineWorkflow({
    id: 'test/count',
    name: 'Count',
    description: 'Counts.',
    params: z.object({ name: z.string(), units: z.number() }),
    inputs: [],
    outputs: { count: { fileName: 'count.txt', contentType: 'text/plain' } },
    stages: [
      {
        name: 'count',
        async run(context) {
          const { checkpoint, directory, outputPath, params } = context
          let text = ''
          for (const { path } of checkpoint.parts) text += await readFile(path, 'utf8')
          let unkept = ''
          for (let unit = text.length; unit < params.units; unit++) {
            done.push(`${params.name}${unit}`)
            text += 'x'
            unkept += 'x'
            await onUnit(unit, context)
            context.signal.throwIfAborted()
            if (!checkpoint.isDue()) continue
            await writeFile(join(directory, 'part'), unkept)
            await checkpoint.keep(join(directory, 'part'))
            unkept = ''
          }
          await writeFile(outputPath('count'), text)
        },
      },
    ],
  })
  return { workflow, done }
}

/** More units than can be done before the preemption. */
const manyUnits = 5000
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const settings = {
  checkpoints: { afterMs: 0, everyMs: 1 },
  dispatch: { concurrency: 1, preemptAfterMs: 1, sweepIntervalMs: 3_600_000 },
}

/** An engine with one slot, and its jobs by name. */
function oneSlot(
  onUnit: (unit: number, context: StageContext) => Promise<unknown>,
  parts = {},
  dispatch = {},
  limits = {},
  more = {},
) {
  const { workflow, done } = countWorkflow(onUnit)
  const quick = textWorkflow(() => {}, 'test/quick')
  const jobs = memoryJobs()
  const blobs = { ...memoryBlobs(), traits: { scope: 'shared' as const } }
  const runner = inlineRunner({ resolve: (id) => (id === quick.id ? quick : workflow) })
  const { engine, until } = testEngine(
    workflow,
    { ...settings, ...more, limits, dispatch: { ...settings.dispatch, ...dispatch } },
    { jobs, blobs, runner, workflows: [workflow, quick], ...parts },
  )
  const submit = async (app: string, name: string, units = 1) =>
    (await engine.submit({ app, workflow: workflow.id, params: { name, units } })).job
  const submitQuick = async (app: string) => (await engine.submit({ app, workflow: quick.id, params: {} })).job
  return { engine, jobs, done, until, submit, submitQuick }
}

/** The same for a workflow function with steps. */
function stepsAndQuick(run: (context: RunContext) => Promise<void>) {
  const workflow = stepsWorkflow(run)
  const quick = textWorkflow(() => {}, 'test/quick')
  const workflows = [workflow, quick]
  const runner = inlineRunner({ resolve: (id) => workflows.find((one) => one.id === id)! })
  return { workflow, ...oneSlot(() => pause(1), { workflows, runner }) }
}

describe('a job that has kept its work', () => {
  test('gives way to the waiting job of another application, and continues where it was', async () => {
    let isOver = false
    const { engine, jobs, done, until, submit, submitQuick } = oneSlot(async () => isOver || (await pause(2)))
    const preempted: string[] = []
    engine.on('job.preempted', ({ job }) => preempted.push(job.id))
    await engine.start()
    const long = await submit('long', 'l', manyUnits)
    await expect.poll(() => done.length).toBeGreaterThan(3)
    const later = await submit('long', 'm')
    const other = await submitQuick('other')
    const ended = await until(other.id, 'SUCCEEDED')
    isOver = true
    expect(preempted).toEqual([long.id])
    expect((await until(long.id, 'SUCCEEDED')).completedAt).toBeGreaterThanOrEqual(ended.completedAt ?? Infinity)
    await until(later.id, 'SUCCEEDED')
    // It keeps its place before the job submitted after it.
    expect(done.at(-1)).toBe('m0')
    expect(new Set(done).size).toBe(manyUnits + 1)
    expect(done.length - new Set(done).size).toBeLessThan(0.02 * manyUnits)
    expect((await jobs.get(long.id))?.history.map(({ outcome }) => outcome)).toEqual(['preempted', 'succeeded'])
    expect(await jobs.get(long.id)).toMatchObject({ attempts: 1, lapses: 0, shutdownRequeues: 0 })
    await engine.close()
  })

  test('of steps is run again from its beginning, with what its finished steps returned', async () => {
    const ran: string[] = []
    let runs = 0
    const {
      workflow: steps,
      until,
      jobs,
      submitQuick,
      engine,
    } = stepsAndQuick(async ({ step, signal }) => {
      runs++
      for (let n = 0; n < 3; n++) expect(await step.run(`short-${n}`, async () => ran.push(`short-${n}`))).toBe(n + 1)
      await step.run('long', async () => {
        ran.push('long')
        if (runs === 1) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      })
    })
    await engine.start()
    const long = (await engine.submit({ app: 'long', workflow: steps.id, params: {} })).job
    await expect.poll(() => ran.length).toBe(4)
    await until((await submitQuick('other')).id, 'SUCCEEDED')
    await until(long.id, 'SUCCEEDED')
    expect(ran).toEqual(['short-0', 'short-1', 'short-2', 'long', 'long'])
    const { history, attempts } = (await jobs.get(long.id)) ?? {}
    expect([history?.map(({ outcome }) => outcome), attempts]).toEqual([['preempted', 'succeeded'], 1])
    await engine.close()
  })

  test('shows why it waits', async () => {
    const { engine, until, submit, submitQuick } = oneSlot(() => pause(5))
    const reason = new Promise((resolve) =>
      engine.on('job.preempted', ({ job }) => resolve(engine.waiting(job).then((waiting) => waiting?.reason))),
    )
    await engine.start()
    const long = await submit('long', 'l', manyUnits)
    await until(long.id, 'STARTED')
    await submitQuick('other')
    expect(await reason).toBe('preempted')
    await engine.cancel(long.id)
    await until(long.id, 'FAILED')
    await engine.close()
  })

  test('keeps its slot while the jobs that wait are of its own application, or of one with as many', async () => {
    const both = gate()
    const finish = gate()
    const { engine, jobs, done, until, submit, submitQuick } = oneSlot(
      async (unit) => {
        if (unit === 3) both.open()
        if (unit >= 3) await finish.opened
        await pause(2)
      },
      {},
      { concurrency: 2 },
    )
    await engine.start()
    const [first, second] = [await submit('a', 'a', 9), await submit('b', 'b', 9)]
    await expect.poll(() => done.filter((one) => one.endsWith('3')).length).toBe(2)
    const waiting = [await submitQuick('a'), await submitQuick('b')]
    // Time for many polls.
    await pause(200)
    for (const { id } of waiting) expect(await jobs.get(id)).toMatchObject({ status: 'QUEUED' })
    finish.open()
    for (const { id } of [first, second, ...waiting]) await until(id, 'SUCCEEDED')
    for (const { id } of [first, second]) expect((await jobs.get(id))?.history).toHaveLength(1)
    await engine.close()
  })

  test('never gives way where that is turned off, and one without a checkpoint never does', async () => {
    for (const [parts, dispatch] of [
      [{}, { preemptAfterMs: null }],
      [{ blobs: memoryBlobs() }, {}],
    ] as const) {
      const finish = gate()
      const { engine, jobs, done, until, submit, submitQuick } = oneSlot(
        (unit) => (unit < 3 ? pause(2) : finish.opened),
        parts,
        dispatch,
      )
      await engine.start()
      const long = await submit('long', 'l', 5)
      await expect.poll(() => done.length).toBe(4)
      const other = await submitQuick('other')
      await pause(100)
      expect(await jobs.get(other.id)).toMatchObject({ status: 'QUEUED' })
      finish.open()
      for (const { id } of [long, other]) await until(id, 'SUCCEEDED')
      expect((await jobs.get(long.id))?.history).toHaveLength(1)
      await engine.close()
    }
  })

  test('keeps its slot once it keeps no more of its work: the rest would be lost', async () => {
    const finish = gate()
    const { logger, lines } = recordingLogger()
    const { engine, jobs, done, until, submit, submitQuick } = oneSlot(
      async (unit, { checkpoint }) => {
        if (unit < 50) return await pause(2)
        checkpoint.stop()
        checkpoint.stop()
        await finish.opened
      },
      {},
      {},
      {},
      { logger },
    )
    await engine.start()
    const long = await submit('long', 'l', 52)
    await expect.poll(() => done.length).toBe(51)
    const other = await submitQuick('other')
    await pause(100)
    expect(await jobs.get(other.id)).toMatchObject({ status: 'QUEUED' })
    finish.open()
    for (const { id } of [long, other]) await until(id, 'SUCCEEDED')
    expect((await jobs.get(long.id))?.history).toHaveLength(1)
    const warnings = lines.filter(({ level }) => level === 'warn')
    expect(warnings).toMatchObject([{ fields: { jobId: long.id } }])
    await engine.close()
  })

  test('gives way at once to an application that has the slot reserved, and not to another', async () => {
    let isOver = false
    const { engine, jobs, done, until, submit, submitQuick } = oneSlot(
      async () => isOver || (await pause(2)),
      {},
      { preemptAfterMs: 3_600_000 },
      { applications: { urgent: { reserved: 1 } } },
    )
    await engine.start()
    const long = await submit('long', 'l', manyUnits)
    await expect.poll(() => done.length).toBeGreaterThan(3)
    const other = await submitQuick('other')
    const urgent = await submitQuick('urgent')
    await until(urgent.id, 'SUCCEEDED')
    expect(await jobs.get(long.id)).toMatchObject({ completedAt: null })
    isOver = true
    for (const { id } of [long, other]) await until(id, 'SUCCEEDED')
    expect((await jobs.get(long.id))?.history[0]?.outcome).toBe('preempted')
    await engine.close()
  })

  test('keeps the slot that its application has reserved; others get an unused reserved one', async () => {
    for (const [reserving, gives] of [
      ['long', false],
      ['urgent', true],
    ] as const) {
      let isOver = false
      const { engine, jobs, done, until, submit, submitQuick } = oneSlot(
        async () => isOver || (await pause(2)),
        {},
        {},
        { applications: { [reserving]: { reserved: 1 } } },
      )
      await engine.start()
      const long = await submit('long', 'l', manyUnits)
      await expect.poll(() => done.length).toBeGreaterThan(3)
      const other = await submitQuick('other')
      if (gives) await until(other.id, 'SUCCEEDED')
      else await pause(150)
      isOver = true
      await until(long.id, 'SUCCEEDED')
      await until(other.id, 'SUCCEEDED')
      expect((await jobs.get(long.id))?.history.map(({ outcome }) => outcome)).toEqual(
        gives ? ['preempted', 'succeeded'] : ['succeeded'],
      )
      await engine.close()
    }
  })

  test('gives way soon, however long it took in its first attempt to keep anything', async () => {
    let isOver = false
    const { engine, jobs, until, submit, submitQuick } = oneSlot(
      async (unit) => isOver || (await pause(unit === 0 ? 100 : 2)),
    )
    await engine.start()
    const long = await submit('long', 'l', 1000)
    await until(long.id, 'STARTED')
    await until((await submitQuick('other')).id, 'SUCCEEDED')
    isOver = true
    await until(long.id, 'SUCCEEDED')
    expect((await jobs.get(long.id))?.history[0]?.outcome).toBe('preempted')
    await engine.close()
  })

  test('has longer to store its last part than at a shutdown', async () => {
    const handBack = vi.spyOn(AttemptCheckpoint.prototype, 'beforeHandBack')
    onTestFinished(() => handBack.mockRestore())
    const { engine, done, until, submit, submitQuick } = oneSlot(() => pause(2), {}, { leaseMs: 300 })
    await engine.start()
    await submit('long', 'l', manyUnits)
    await expect.poll(() => done.length).toBeGreaterThan(3)
    await until((await submitQuick('other')).id, 'SUCCEEDED')
    const { length } = done
    await expect.poll(() => done.length).toBeGreaterThan(length)
    // The attempt of the other job has cleaned up.
    await expect.poll(async () => (await engine.health()).running).toBe(1)
    expect(handBack.mock.calls).toEqual([[false]])
    await engine.close({ timeoutMs: 0 })
    expect(handBack.mock.calls).toEqual([[false], [true]])
  })

  test('takes turns with the long jobs of others, which all come to their end', async () => {
    let isOver = false
    const { engine, jobs, done, until, submit } = oneSlot(async () => isOver || (await pause(2)))
    await engine.start()
    const long = [
      await submit('a', 'a', manyUnits),
      await submit('b', 'b', manyUnits),
      await submit('c', 'c', manyUnits),
    ]
    const turns = () => {
      const apps = done.map((one) => one.slice(0, 1))
      return apps.filter((app, at) => app !== apps[at - 1]).slice(0, 4)
    }
    await expect.poll(turns, { timeout: 10_000 }).toHaveLength(4)
    expect(turns()).toEqual(['a', 'b', 'c', 'a'])
    isOver = true
    for (const { id } of long) await until(id, 'SUCCEEDED')
    expect(new Set(done).size).toBe(3 * manyUnits)
    for (const { id } of long) expect(await jobs.get(id)).toMatchObject({ status: 'SUCCEEDED', attempts: 1 })
    await engine.close()
  })
})
