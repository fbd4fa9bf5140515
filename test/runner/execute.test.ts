import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { StemworkError } from '../../src/core/engine/errors.js'
import type { WorkProgress } from '../../src/core/engine/ports/runner.js'
import { execute } from '../../src/core/engine/runner/execute.js'
import {
  defineWorkflow,
  type OutputDeclaration,
  type Stage,
  type StageContext,
  type Workflow,
} from '../../src/core/engine/workflow/workflow.js'
import { stepsWorkflow } from '../engine/harness.js'
import { orderTo, rejection } from './run-order.js'

const report = { report: { fileName: 'report.txt', contentType: 'text/plain' } }

function workflowOf(stages: Stage[], outputs: Record<string, OutputDeclaration> = {}): Workflow {
  return defineWorkflow({
    id: 'test/execute',
    name: 'Execute',
    description: '',
    params: z.unknown(),
    outputs,
    stages,
  })
}

async function progressOf(stages: Stage[]): Promise<WorkProgress[]> {
  const seen: WorkProgress[] = []
  await execute(workflowOf(stages), orderTo(''), {
    signal: new AbortController().signal,
    onProgress: (progress) => void seen.push(progress),
  })
  return seen
}

const quietly = { signal: new AbortController().signal, onProgress: () => {} }

describe('progress', () => {
  it('weighs the stages and names the one that runs', async () => {
    const seen = await progressOf([
      { name: 'decode', run: async ({ progress }) => progress(0.5) },
      { name: 'separate', weight: 3, run: async ({ progress }) => progress(0.5) },
    ])
    expect(seen).toEqual([
      { stage: 'decode', progress: 0 },
      { stage: 'decode', progress: 0.125 },
      { stage: 'decode', progress: 0.25 },
      { stage: 'separate', progress: 0.25 },
      { stage: 'separate', progress: 0.625 },
      { stage: 'separate', progress: 1 },
    ])
  })

  it('never decreases, never leaves 0..1 and ignores what is not a number', async () => {
    const seen = await progressOf([
      {
        name: 'wild',
        run: async ({ progress }) => {
          for (const fraction of [0.6, 0.2, -3, NaN, Infinity, -Infinity, 0.9]) progress(fraction)
        },
      },
    ])
    expect(seen.map(({ progress }) => progress)).toEqual([0, 0.6, 1])
  })

  it('never names a stage again that has ended, even if something of it still reports', async () => {
    let late = (_fraction: number) => {}
    const stages: Stage[] = [
      { name: 'decode', run: async ({ progress }) => void (late = progress) },
      { name: 'separate', run: async ({ progress }) => (progress(0.5), late(0.9), progress(0.6)) },
    ]
    const names = (await progressOf(stages)).map(({ stage }) => stage)
    expect(names).toEqual(['decode', 'decode', 'separate', 'separate', 'separate', 'separate'])
  })

  it('never names a step again that has ended, either', async () => {
    const names: string[] = []
    let late = (_fraction: number) => {}
    const workflow = stepsWorkflow(async ({ step }) => {
      await step.run('decode', async ({ progress }) => void (late = progress))
      await step.run('separate', async () => late(0.9))
    })
    await execute(workflow, orderTo(''), {
      ...quietly,
      onProgress: ({ stage }) => void names.push(stage),
    })
    expect(names).toEqual(['decode', 'decode', 'separate', 'separate'])
  })
})

describe('outputs', () => {
  it('are collected with their sizes, optional ones if they are there', async () => {
    const outputs = {
      ...report,
      extra: { fileName: 'extra.bin', contentType: 'application/octet-stream', optional: true },
    }
    const stage: Stage = {
      name: 'write',
      run: async ({ outputPath }) => await writeFile(outputPath('report'), 'hello'),
    }
    const result = await execute(workflowOf([stage], outputs), orderTo(''), quietly)
    expect(result.outputs).toEqual({
      report: {
        path: expect.stringMatching(/report\.txt$/),
        bytes: 5,
        contentType: 'text/plain',
        fileName: 'report.txt',
      },
    })
  })

  it.skipIf(process.platform === 'win32')(
    'are not taken for missing when the disk does not answer (needs links)',
    async () => {
      const extra = { fileName: 'extra.bin', contentType: 'application/octet-stream', optional: true }
      const order = orderTo('')
      const stage: Stage = {
        name: 'write',
        // Every look at a file in it fails from now on, as on a broken disk.
        run: async () => {
          await rm(order.directory, { recursive: true })
          await symlink(order.directory, order.directory)
        },
      }
      const run = execute(workflowOf([stage], { extra }), order, quietly)
      expect(await rejection(run)).toMatchObject({ code: 'ELOOP' })
    },
  )

  it('with the same file name do not collide', async () => {
    const outputs = {
      'a-b': { fileName: 'c.txt', contentType: 'text/plain' },
      a: { fileName: 'b-c.txt', contentType: 'text/plain' },
      b: { fileName: 'c.txt', contentType: 'text/plain' },
    }
    const stage: Stage = {
      name: 'write',
      run: async ({ outputPath }) =>
        void (await Promise.all(Object.keys(outputs).map((name) => writeFile(outputPath(name), name)))),
    }
    const result = await execute(workflowOf([stage], outputs), orderTo(''), quietly)
    expect(new Set(Object.values(result.outputs).map(({ path }) => path)).size).toBe(3)
  })

  it.each(['../report', 'other', '', '/etc/passwd', '__proto__', 'constructor'])(
    'the name %j, which is not declared, has no path',
    async (name) => {
      const stage: Stage = { name: 'write', run: async ({ outputPath }) => void outputPath(name) }
      const error = await rejection(execute(workflowOf([stage], report), orderTo(''), quietly))
      expect(error).toMatchObject({ code: 'INTERNAL_ERROR', message: expect.stringContaining('report') })
    },
  )

  it.each([
    ['../up', 'x.txt'],
    ['up', '../x.txt'],
    ['up', 'a/b.txt'],
    ['up', '..'],
  ])('a handmade workflow cannot declare %j as %j', async (name, fileName) => {
    const stage: Stage = { name: 'write', run: async ({ outputPath }) => void outputPath(name) }
    const workflow = { ...workflowOf([stage]), outputs: () => ({ [name]: { fileName, contentType: 'text/plain' } }) }
    expect(await rejection(execute(workflow, orderTo(''), quietly))).toMatchObject({ code: 'INTERNAL_ERROR' })
  })

  it('that are missing fail the run and are named', async () => {
    const error = await rejection(
      execute(workflowOf([{ name: 'idle', run: async () => {} }], report), orderTo(''), quietly),
    )
    expect(error).toMatchObject({
      code: 'INTERNAL_ERROR',
      message: expect.stringContaining('"report"'),
      details: { output: 'report' },
    })
  })

  it.each([
    ['a link', (path: string) => symlink('/etc/hostname', path)],
    ['a folder', (path: string) => mkdir(path)],
  ])('that are %s instead of a file are not published', async (_, make) => {
    const stage: Stage = { name: 'make', run: async ({ outputPath }) => await make(outputPath('report')) }
    expect(await rejection(execute(workflowOf([stage], report), orderTo(''), quietly))).toMatchObject({
      code: 'INTERNAL_ERROR',
    })
  })
})

describe('details', () => {
  it('are collected and cannot reach a prototype', async () => {
    const stage: Stage = {
      name: 'tell',
      run: async ({ detail }) => {
        detail('model', 'first')
        detail('model', 'second')
        detail('__proto__', { polluted: true })
      },
    }
    const { details } = await execute(workflowOf([stage]), orderTo(''), quietly)
    expect(details.model).toBe('second')
    expect('polluted' in details).toBe(false)
  })
})

describe('failures', () => {
  it("of the library pass unchanged, with the workflow's own words", async () => {
    const refusal = new StemworkError('BAD_INPUT', 'No audio.', { reason: 'no_audio' })
    const stage: Stage = { name: 'refuse', run: async () => Promise.reject(refusal) }
    expect(await rejection(execute(workflowOf([stage]), orderTo(''), quietly))).toBe(refusal)
  })

  it('of any other kind do not show their text, which stays in the cause', async () => {
    const cause = new Error('ENOENT /var/secret/file')
    const stage: Stage = { name: 'broken', run: async () => Promise.reject(cause) }
    const error = await rejection(execute(workflowOf([stage]), orderTo(''), quietly))
    expect(error).toMatchObject({ code: 'INTERNAL_ERROR', retryable: true, details: { stage: 'broken' }, cause })
    expect((error as Error).message).not.toContain('secret')
  })

  it("that follow an abort reject with the abort's reason, and later stages do not run", async () => {
    const controller = new AbortController()
    const ran: string[] = []
    const stages: Stage[] = [
      { name: 'first', run: async () => controller.abort(new StemworkError('CANCELED', 'Canceled.')) },
      { name: 'second', run: async () => void ran.push('second') },
    ]
    const error = await rejection(execute(workflowOf(stages), orderTo(''), { ...quietly, signal: controller.signal }))
    expect(error).toBe(controller.signal.reason)
    expect(ran).toEqual([])
  })
})

describe('params', () => {
  const stage = (seen: unknown[]): Stage => ({ name: 'look', run: async ({ params }) => void seen.push(params) })

  it("reach the stages with the schema's defaults and transforms", async () => {
    const seen: unknown[] = []
    const params = z.object({ format: z.string().default('wav'), size: z.string().transform(Number) })
    await execute({ ...workflowOf([stage(seen)]), params }, orderTo('', { params: { size: '7' } }), quietly)
    expect(seen).toEqual([{ format: 'wav', size: 7 }])
  })

  it('that do not fit the schema of the process that runs them fail the run before any stage', async () => {
    const seen: unknown[] = []
    const workflow = { ...workflowOf([stage(seen)]), params: z.object({ size: z.number() }) }
    expect(await rejection(execute(workflow, orderTo(''), quietly))).toMatchObject({
      code: 'INTERNAL_ERROR',
      cause: expect.any(Error),
    })
    expect(seen).toEqual([])
  })
})

describe('a workflow is told of its mistake', () => {
  it.each<[string, unknown]>([
    ['a BigInt', 5n],
    [
      'a circle',
      (() => {
        const circle: Record<string, unknown> = {}
        return Object.assign(circle, { circle })
      })(),
    ],
  ])('at once if a detail is %s, with which the end of its job could not be stored', async (_what, value) => {
    const stages = [{ name: 'measure', run: async ({ detail }: StageContext) => detail('size', value) }]
    const error = await rejection(execute(workflowOf(stages), orderTo(''), quietly))
    expect(error).toMatchObject({ code: 'INTERNAL_ERROR', cause: { name: 'TypeError' } })
  })
})
