import { expect, test } from 'vitest'
import { explainFullDisk } from '../../../src/core/engine/dispatch/attempt/full-disk.js'
import { badInput, StemworkError } from '../../../src/core/engine/errors.js'

const full = (code = 'ENOSPC', cause?: unknown) => Object.assign(new Error('no space left', { cause }), { code })
const within = (error: Error, depth: number): Error =>
  depth === 0 ? error : new Error(`around ${depth}`, { cause: within(error, depth - 1) })

// The second as Node.js reports it on Linux.
test.each(['ENOSPC', 'Unknown system error -122'])(
  'an error with %s as its cause tells the operator about the disk',
  (code) => {
    for (const depth of [0, 1, 7]) {
      const error = within(full(code), depth)
      expect(explainFullDisk(error, '/scratch')).toMatchObject({
        code: 'INTERNAL_ERROR',
        cause: { message: expect.stringMatching(/disk is full.*\/scratch.*scratchDirectory/), cause: { code } },
      })
    }
  },
)

test('an error of the engine keeps what clients see of it', () => {
  const options = { reason: 'worker_lost', retryable: true, details: { at: 1 }, cause: full() } as const
  const error = new StemworkError('INTERNAL_ERROR', 'It ended.', options)
  const explained = explainFullDisk(error, '/scratch')
  expect(explained).not.toBe(error)
  expect(explained).toMatchObject({
    code: 'INTERNAL_ERROR',
    message: 'It ended.',
    reason: 'worker_lost',
    retryable: true,
    details: { at: 1 },
    cause: { message: expect.stringContaining('/scratch'), cause: options.cause },
  })
})

test('all others stay as they are, even if their causes form a circle', () => {
  const circle = new Error('of itself')
  circle.cause = circle
  const others = [new Error('x'), 'text', undefined, full('EIO'), within(full(), 8), circle]
  const explained = [
    badInput('decode_failed', 'no', full()),
    { code: 'ENOSPC' },
    new Error('x', { cause: { code: 'ENOSPC' } }),
  ]
  for (const error of [...others, ...explained]) expect(explainFullDisk(error, '/scratch')).toBe(error)
})
