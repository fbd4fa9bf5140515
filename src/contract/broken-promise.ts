import { AssertionError } from 'node:assert'
import { inspect, isDeepStrictEqual } from 'node:util'
import { type ErrorCode, StemworkError } from '../core/engine/errors.js'

/**
 * Asserts that the call fails: with an error of the library that has this code, with this very error, or, if neither is
 * given, with any error.
 *
 * @param promise what the adapter promises, as a sentence
 */
export async function assertFails(
  call: Promise<unknown> | (() => Promise<unknown>),
  expected: ErrorCode | Error | undefined,
  promise: string,
): Promise<void> {
  const outcome = await (typeof call === 'function' ? call() : call).then(
    () => 'The call succeeded.',
    (error: unknown) => (isExpected(error, expected) ? undefined : `It failed with ${inWords(error)}.`),
  )
  if (outcome !== undefined) throw new AssertionError({ message: `${promise} ${outcome}`, stackStartFn: assertFails })
}

/** Asserts that the adapter answered with `undefined`: there is nothing. */
export function assertNone(answer: unknown, promise: string): void {
  if (answer === undefined) return
  const found = { actual: answer, expected: undefined, operator: 'strictEqual' }
  throw new AssertionError({ message: promise, ...found, stackStartFn: assertNone })
}

function isExpected(error: unknown, expected: ErrorCode | Error | undefined): boolean {
  if (typeof expected === 'string') return StemworkError.is(error) && error.code === expected
  return expected === undefined || error === expected
}

function inWords(error: unknown): string {
  return StemworkError.is(error) ? `${error.code}: ${error.message}` : String(error)
}

/**
 * Describes a failed assertion: the promise, the expected and the actual value, and the case. Other errors are returned
 * unchanged.
 */
export function brokenPromise(caseName: string, error: unknown): unknown {
  if (!(error instanceof AssertionError)) return error
  // Some versions of Node append a diff to the message, on lines of its own.
  const [promise] = error.message.split('\n')
  const message = `${promise}${comparison(error)} Case: "${caseName}".`
  const { actual, expected, operator } = error
  const worded = Object.assign(new AssertionError({ message }), { actual, expected, operator })
  const frames = error.stack?.slice(error.stack.indexOf('\n    at ')) ?? ''
  worded.stack = `${worded.name}: ${message}${frames}`
  return worded
}

function comparison({ actual, expected, operator }: AssertionError): string {
  if (operator !== 'strictEqual' && operator !== 'deepStrictEqual') return ''
  const [wanted, got] = isRecord(expected) && isRecord(actual) ? differingFields(expected, actual) : [expected, actual]
  return ` Expected ${shown(wanted)}, got ${shown(got)}.`
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

/** The fields in which two records of forty fields each differ. */
function differingFields(a: Record<string, unknown>, b: Record<string, unknown>): Record<string, unknown>[] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter(
    (name) => !isDeepStrictEqual(a[name], b[name]),
  )
  return [a, b].map((record) => Object.fromEntries(names.map((name) => [name, record[name]])))
}

function shown(value: unknown): string {
  return inspect(value, { depth: 3, breakLength: Infinity, compact: true, maxArrayLength: 12, maxStringLength: 120 })
}
