import { expect } from 'vitest'

/** One mistake, and what its message must have: what happened, what was expected or what to do, the value given. */
export interface Mistake {
  what: string
  /** All of these are in the message. */
  says: readonly RegExp[]
}

/** What no message for a newcomer has: a stack, a value that nobody wrote, a secret, or the words of a library. */
const never = [
  /\n\s+at .+:\d+/,
  /\[object Object\]|\bundefined\b|NaN/,
  /s3cret/,
  /Invalid input:|Unrecognized key|ZodError|received|Cannot (read|destructure)/,
]
const mostLines = 3

/** @param message as a newcomer reads it */
export function expectToTeach({ what, says }: Mistake, message: string): void {
  for (const text of says) expect(message, what).toMatch(text)
  for (const text of never) expect(message, what).not.toMatch(text)
  expect(message.trim().split('\n').length, `${what}: lines of ${message}`).toBeLessThanOrEqual(mostLines)
}
