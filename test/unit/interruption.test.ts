import { expect, it } from 'vitest'
import { Interruption } from '../../src/core/engine/interruption.js'

const [first, second] = [new Error('first'), new Error('second')]

it('tells a signal that was asked for before, and one that is asked for afterwards', () => {
  const interruption = new Interruption()
  const { signal } = interruption
  let heard = 0
  signal.addEventListener('abort', () => heard++)
  interruption.throwIfAborted()
  expect([interruption.reason, signal.aborted]).toEqual([undefined, false])
  interruption.abort(first)
  interruption.abort(second)
  expect([interruption.reason, signal.reason, heard]).toEqual([first, first, 1])
  expect(interruption.signal).toBe(signal)
  expect(() => interruption.throwIfAborted()).toThrow(first)

  const late = new Interruption()
  late.abort(first)
  expect(late.signal).toMatchObject({ aborted: true, reason: first })
})
