import { tracingChannel } from 'node:diagnostics_channel'
import { expect, test } from 'vitest'
import { StemworkError } from '../../src/core/engine/errors.js'
import { testEngine, textWorkflow } from './harness.js'

test('an attempt is traced with a span for each of its steps, and an error reaches the span in which it arose', async () => {
  const seen: string[] = []
  const names = ['stemwork.job', 'stemwork.fetch', 'stemwork.run', 'stemwork.publish']
  const subscriptions = names.map((name) => {
    const channel = tracingChannel(name)
    const handlers = {
      start: (message: unknown) => seen.push(`${name} start ${(message as { attempt: number }).attempt}`),
      end: () => {},
      asyncStart: () => {},
      asyncEnd: () => seen.push(`${name} end`),
      error: () => seen.push(`${name} error`),
    }
    channel.subscribe(handlers)
    return () => channel.unsubscribe(handlers)
  })
  let fails = false
  const { engine, submit } = testEngine(
    textWorkflow(() => {
      if (fails) throw new StemworkError('BAD_INPUT', 'not audio')
    }),
  )
  await engine.run((await submit()).id)
  expect(seen).toEqual([
    'stemwork.job start 1',
    'stemwork.fetch start 1',
    'stemwork.fetch end',
    'stemwork.run start 1',
    'stemwork.run end',
    'stemwork.publish start 1',
    'stemwork.publish end',
    'stemwork.job end',
  ])
  seen.length = 0
  fails = true
  await engine.run((await submit()).id)
  expect(seen).toContain('stemwork.run error')
  expect(seen).not.toContain('stemwork.publish start 1')
  for (const unsubscribe of subscriptions) unsubscribe()
})
