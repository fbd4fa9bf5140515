import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { internalError } from '../../../src/core/engine/errors.js'
import { checkpointsPrefix } from '../../../src/core/engine/job/checkpoint-keys.js'
import { localFile } from '../../../src/core/engine/intake/local-file.js'
import type { EngineSettings } from '../../../src/core/engine/options.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { composeWorkflow } from '../../../src/core/engine/workflow/composition.js'
import { defineWorkflow, type StageContext, type Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { gate, keys, sharedBlobs, stepsWorkflow, testEngine } from '../harness.js'

const twoWords = fileURLToPath(new URL('../fixtures/two-words.txt', import.meta.url))
const params = z.strictObject({ inputUrl: z.url(), mark: z.string().default('*') })

/** Writes the input between marks, and an empty file. */
function marking(
  id: string,
  runs: string[],
  run: (context: StageContext) => Promise<void> | void = () => {},
): Workflow {
  return defineWorkflow({
    id: `test/${id}`,
    name: id,
    description: '',
    params,
    outputs: {
      empty: { fileName: 'empty.txt', contentType: 'text/plain' },
      marked: { fileName: 'marked.txt', contentType: 'text/plain' },
    },
    stages: [
      {
        name: 'mark',
        async run(context) {
          runs.push(id)
          await run(context as unknown as StageContext)
          const { mark } = context.params
          await writeFile(context.outputPath('empty'), '')
          await writeFile(
            context.outputPath('marked'),
            `${mark}${await readFile(context.inputs.inputUrl.path, 'utf8')}${mark}`,
          )
          context.downloadName('marked', 'Marked words.txt')
          context.detail('by', id)
        },
      },
    ],
  })
}

function chain(first: Workflow, second: Workflow, mark = '-'): Workflow {
  return composeWorkflow({
    id: 'test/chain',
    name: 'Chain',
    description: '',
    steps: {
      one: { workflow: first },
      two: { workflow: second, inputs: { inputUrl: 'one.marked' }, params: { mark }, policy: { maxAttempts: 1 } },
    },
    outputs: { first: 'one.marked', both: 'two.marked', empty: 'one.empty' },
  })
}

/** Runs a job with each workflow in turn, on one store, until it ends: attempts may be of different deployments. */
async function run(
  workflow: Workflow,
  blobs: BlobStore,
  checkpoints: EngineSettings['checkpoints'] = { afterMs: 0, everyMs: 1 },
) {
  const tested = testEngine(workflow, { checkpoints, dispatch: { maxAttempts: 3 } }, { blobs })
  const { job } = await tested.engine.submit({
    app: 'app',
    workflow: workflow.id,
    inputs: { inputUrl: localFile(twoWords) },
  })
  const done = await tested.engine.run(job.id)
  const files: Record<string, string> = {}
  for (const [name, { key }] of Object.entries(done?.outputs ?? {})) {
    const chunks = []
    for await (const chunk of (await blobs.get(key))?.body ?? []) chunks.push(chunk)
    files[name] = Buffer.concat(chunks).toString()
  }
  await tested.engine.close()
  return { done, files }
}

/** Parts kept for a step in progress. */
const partsOf = async (blobs: BlobStore) =>
  (await keys(blobs, [checkpointsPrefix])).filter((key) => key.includes('/part-'))

async function kept(blobs: BlobStore, count: number): Promise<void> {
  while ((await partsOf(blobs)).length < count) await new Promise((resolve) => setTimeout(resolve, 2))
}

describe('the checkpoint of a composed workflow', () => {
  test('does not repeat finished steps in the next attempt, and leaves nothing behind', async () => {
    const blobs = sharedBlobs()
    const runs: string[] = []
    const second = marking('second', runs, async () => {
      if (runs.length === 2) throw internalError(new Error('the worker is gone'))
    })
    const { done, files } = await run(chain(marking('first', runs), second), blobs)
    expect(done?.status).toBe('SUCCEEDED')
    expect(runs).toEqual(['first', 'second', 'second'])
    expect(files).toEqual({ first: '*left right*', both: '-*left right*-', empty: '' })
    expect(done?.outputs?.first).toMatchObject({ fileName: 'first.txt', downloadName: 'Marked words.txt' })
    expect(done?.details).toEqual({ steps: { one: { by: 'first' }, two: { by: 'second' } } })
    expect(await keys(blobs, [checkpointsPrefix])).toEqual([])
  })

  test('lets the step that was in progress continue at its last part', async () => {
    const blobs = sharedBlobs()
    const runs: string[] = []
    const units: number[] = []
    const failAt = [1, 3]
    const second = marking('second', runs, async ({ checkpoint, directory }) => {
      const before = await Promise.all(checkpoint.parts.map(({ path }) => readFile(path, 'utf8')))
      expect(before).toEqual(units.map(String))
      for (let unit = before.length; unit < 5; unit++) {
        units.push(unit)
        while (!checkpoint.isDue()) await new Promise((resolve) => setTimeout(resolve, 1))
        await writeFile(join(directory, 'part'), String(unit))
        await checkpoint.keep(join(directory, 'part'))
        await kept(blobs, unit + 1)
        if (unit !== failAt[0]) continue
        failAt.shift()
        throw internalError(new Error('the worker is gone'))
      }
    })
    const { done } = await run(chain(marking('first', runs), second), blobs)
    expect(done?.status).toBe('SUCCEEDED')
    expect(units).toEqual([0, 1, 2, 3, 4])
    expect(runs).toEqual(['first', 'second', 'second', 'second'])
  })

  test('is not used for a step that has changed since', async () => {
    const blobs = sharedBlobs()
    const runs: string[] = []
    const first = marking('first', runs)
    // The job's second attempt finds the step with another mark, as after an upgrade.
    let mark = '1'
    const composed = chain(first, marking('second', runs))
    const [one, two] = composed.composition?.steps ?? []
    const changing = {
      ...composed,
      composition: {
        outputs: composed.composition?.outputs ?? {},
        steps: [
          { ...one!, params: (given: Record<string, unknown>) => ({ ...one!.params(given), mark }) },
          {
            ...two!,
            workflow: marking('second', runs, () => {
              if (mark === '2') return
              mark = '2'
              throw internalError(new Error('the worker is gone'))
            }),
          },
        ],
      },
    }
    const { files } = await run(changing, blobs)
    expect(runs).toEqual(['first', 'second', 'first', 'second'])
    expect(files.both).toBe('-2left right2-')
  })

  test('keeps the details of a step, however long, out of the record', async () => {
    const blobs = sharedBlobs()
    const runs: string[] = []
    const words = 'word '.repeat(1_000)
    const first = marking('first', runs, ({ detail }) => detail('words', words))
    const second = marking('second', runs, async () => {
      const [step] = await recorded()
      expect(step).toMatchObject({ name: 'one', state: 'done', value: null, valueKey: expect.any(String) })
      if (runs.length === 2) throw internalError(new Error('the worker is gone'))
    })
    const tested = testEngine(chain(first, second), { dispatch: { maxAttempts: 3 } }, { blobs })
    const inputs = { inputUrl: localFile(twoWords) }
    const { job } = await tested.engine.submit({ app: 'app', workflow: 'test/chain', inputs })
    const recorded = async () => (await tested.engine.get(job.id))?.steps ?? []
    const done = await tested.engine.run(job.id)
    expect([done?.status, runs]).toEqual(['SUCCEEDED', ['first', 'second', 'second']])
    expect(done?.details).toMatchObject({ steps: { one: { by: 'first', words } } })
    expect(done?.steps.map(({ name, state, attempts }) => [name, state, attempts])).toEqual([
      ['one', 'done', 1],
      ['two', 'done', 2],
    ])
    await tested.engine.close()
  })

  test('does not exist if checkpoints are off: the steps are repeated', async () => {
    const runs: string[] = []
    const second = marking('second', runs, () => {
      if (runs.length === 2) throw internalError(new Error('the worker is gone'))
    })
    const blobs = sharedBlobs()
    const { done } = await run(chain(marking('first', runs), second), blobs, { enabled: false })
    expect([done?.status, runs]).toEqual(['SUCCEEDED', ['first', 'second', 'first', 'second']])
    expect(done?.steps).toEqual([])
  })
})

test('a shutdown stops the step in progress and hands the job back: what is finished is not run again', async () => {
  const jobs = memoryJobs()
  const blobs = sharedBlobs()
  const ran: string[] = []
  const reached = gate()
  const stopped = gate<unknown>()
  const workflow = stepsWorkflow(async ({ step }) => {
    const { made } = await step.run('make', async ({ file }) => {
      ran.push('make')
      const text = file('made.txt')
      await writeFile(text.path, 'kept')
      return { made: text }
    })
    await step.run('read', async ({ signal }) => {
      ran.push(`read ${await readFile(made.path, 'utf8')}`)
      if (ran.length > 2) return
      reached.open()
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))).catch(
        stopped.open,
      )
      signal.throwIfAborted()
    })
  })
  const first = testEngine(workflow, {}, { jobs, blobs })
  await first.engine.start()
  const { id } = await first.submit()
  await reached.opened
  await first.engine.close({ timeoutMs: 0 })
  expect(await stopped.opened).toBeInstanceOf(Error)
  expect(await jobs.get(id)).toMatchObject({
    status: 'QUEUED',
    attempts: 0,
    steps: [{ name: 'make', state: 'done', attempts: 1 }],
  })

  const second = testEngine(workflow, {}, { jobs, blobs })
  expect(await second.engine.run(id)).toMatchObject({ status: 'SUCCEEDED' })
  expect(ran).toEqual(['make', 'read kept', 'read kept'])
  await second.engine.close()
})
