import { expect, test } from 'vitest'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { errorLine, errorText, readableError } from '../../../src/core/engine/job/error-text.js'

/** An error without the stack of this file. */
function plain<Thrown extends Error>(error: Thrown, stack = ''): Thrown {
  return Object.assign(error, { stack })
}

test('an error is described by its class, codes, message and stack, and so are its causes', () => {
  const cause = plain(Object.assign(new TypeError('deep'), { code: 'ECONNRESET', reason: 'gone', errno: 5 }))
  const error = plain(new Error('outer', { cause }), 'Error: old words\n    at one (a.js:1:2)\n    at two (b.js:3:4)')
  expect(errorText(error)).toBe(
    'Error: outer\n    at one (a.js:1:2)\n    at two (b.js:3:4)\ncaused by TypeError [ECONNRESET gone]: deep',
  )
  expect(errorLine(error)).toBe('Error: outer caused by TypeError [ECONNRESET gone]: deep')
  expect(errorText(plain(Object.assign(new Error('numbered'), { code: 7 }), 'no frames'))).toBe('Error: numbered')
  const many = plain(new AggregateError([plain(new Error('a')), plain(new Error('b'))], 'both', { cause: 'c' }))
  expect(errorText(many)).toBe('AggregateError: both\ncaused by c\ncaused by Error: a\ncaused by Error: b')
})

test('an error of another copy of the package is recognized', () => {
  const own = plain(new StemworkError('NOT_FOUND', 'There is none.'))
  const copy: unknown = Object.assign(Object.create(null), own, { name: own.name, message: own.message, stack: '' })
  expect(StemworkError.is(copy)).toBe(true)
  expect(errorText(copy)).toBe('StemworkError [NOT_FOUND]: There is none.')
})

test('other thrown values are described as JSON or as text', () => {
  const circular: Record<string, unknown> = { toString: () => 'round' }
  circular.self = circular
  expect(['text', { a: 1 }, undefined, circular].map(errorText)).toEqual(['text', '{"a":1}', 'undefined', 'round'])
})

test('no text is longer than 8,000 characters, or goes through more than eight causes', () => {
  expect(errorText('x'.repeat(8000))).toBe('x'.repeat(8000))
  expect(errorText('x'.repeat(8001))).toBe(`${'x'.repeat(8000)}...`)
  let error: Error | undefined
  for (let depth = 10; depth >= 0; depth--)
    error = plain(new Error(String(depth), ...(error ? [{ cause: error }] : [])))
  const lines = errorText(error).split('\n')
  expect(lines).toEqual([
    'Error: 0',
    ...Array.from({ length: 8 }, (_, n) => `caused by Error: ${n + 1}`),
    'caused by more',
  ])
})

test('control characters of a text, which a terminal would execute, become spaces', () => {
  expect(errorText('one\u001b[2Jtwo\u0007\n\tthree')).toBe('one [2Jtwo \n\tthree')
})

test('an error that cannot be read is replaced; what a client may see of it stays', () => {
  const unreadable = Object.defineProperty(new Error('x'), 'message', {
    get: () => {
      throw new Error('no')
    },
  })
  const known = new Error('known')
  expect(readableError(known)).toBe(known)
  const substitute = { name: 'Error', message: expect.stringContaining('unreadable') }
  expect(readableError(unreadable)).toMatchObject(substitute)
  const details = { at: 1 }
  const own = new StemworkError('BAD_INPUT', 'Not a song.', {
    reason: 'decode_failed',
    retryable: true,
    details,
    cause: unreadable,
  })
  const { code, message, reason, retryable } = own
  expect(readableError(own)).toMatchObject({ code, message, reason, retryable, details, cause: substitute })
  expect(readableError(Object.assign(own, { details: unreadable }))).toMatchObject({ code, cause: substitute })
  Object.defineProperty(own, 'message', { get: () => unreadable.message })
  expect(readableError(own)).toMatchObject(substitute)
})
