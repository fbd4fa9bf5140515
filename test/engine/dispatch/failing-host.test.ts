import { describe, expect, test, vi } from 'vitest'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { Logger } from '../../../src/core/engine/ports/logger.js'
import type { Span, Tracing } from '../../../src/core/engine/ports/tracing.js'
import { testEngine, textWorkflow } from '../harness.js'

const refuse = (): never => {
  throw new Error('the host failed')
}

const context = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` }

const tracingWith = (changes: Partial<Span>): Tracing => ({
  begin: () => ({ context, set() {}, within: (work) => work(), end() {}, ...changes }),
})

const failingTracing: [string, Tracing][] = [
  ['begins no span', { begin: refuse }],
  ['begins a span that cannot be read', { begin: () => Object.defineProperty({} as Span, 'context', { get: refuse }) }],
  ['sets no attributes', tracingWith({ set: refuse })],
  ['does no work within a span', tracingWith({ within: refuse })],
  ['forgets the work within a span', tracingWith({ within: () => undefined as never })],
  [
    'fails after the work within a span',
    tracingWith({
      within(work) {
        work()
        return refuse()
      },
    }),
  ],
  ['ends no span', tracingWith({ end: refuse })],
  ['has a context that is none', tracingWith({ context: { traceparent: 'x' } })],
]

const failingLogger = (fail: () => unknown) => {
  const write = vi.fn(fail)
  return { debug: write, info: write, warn: write, error: write } as unknown as Logger
}

describe('a job is not affected', () => {
  test.each(failingTracing)('by tracing that %s, and the operator is told once', async (_, tracing) => {
    const told: string[] = []
    const logger = { ...failingLogger(() => {}), error: (_fields: object, message: string) => told.push(message) }
    let runs = 0
    const { engine, submit, until } = testEngine(
      textWorkflow(() => void runs++),
      { tracing, logger },
    )
    const job = await submit()
    await engine.start()
    await until(job.id, 'SUCCEEDED')
    expect(runs).toBe(1)
    expect(await engine.get(job.id)).toMatchObject({ token: 1, lapses: 0 })
    await engine.close()
    expect(told.filter((message) => message.startsWith('Tracing failed'))).toHaveLength(
      tracing === failingTracing[4]![1] ? 0 : 1,
    )
  })

  test.each([
    ['throws', refuse],
    ['rejects', async () => refuse()],
  ])('by a logger that %s', async (_, fail) => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const logger = failingLogger(fail)
    const workflow = textWorkflow(() => {
      throw new StemworkError('BAD_INPUT', 'not audio')
    })
    const { engine, submit, until } = testEngine(workflow, { logger })
    engine.on('job.started', refuse)
    const job = await submit()
    await engine.start()
    await until(job.id, 'FAILED')
    expect(await engine.get(job.id)).toMatchObject({ token: 1, attempts: 1, error: { code: 'BAD_INPUT' } })
    await engine.close()
    expect(logger.warn).toHaveBeenCalled()
    expect(written.mock.calls.filter(([text]) => String(text).includes('The logger failed'))).toHaveLength(1)
    written.mockRestore()
  })

  test('by a tracing that fails, in what it throws itself', async () => {
    const workflow = textWorkflow(() => {
      throw new StemworkError('BAD_INPUT', 'not audio')
    })
    const { engine, submit } = testEngine(workflow, { tracing: tracingWith({ end: refuse }) })
    expect(await engine.run((await submit()).id)).toMatchObject({ error: { code: 'BAD_INPUT', message: 'not audio' } })
    await engine.close()
  })
})
