import { expect } from 'vitest'

/** A mistake and what its message must contain: what happened, what was expected or what to do, the given value. */
export interface Mistake {
  what: string
  /** The message must match all of these. */
  says: readonly RegExp[]
}

/** No message may contain a stack, a value that the user did not write, a secret, or the words of a library. */
const never = [
  /\n\s+at .+:\d+/,
  /\[object Object\]|\bundefined\b|NaN/,
  /s3cret/,
  /Invalid input:|Unrecognized key|ZodError|received|Cannot (read|destructure)/,
]
const mostLines = 3

/** @param message as a newcomer sees it */
export function expectToTeach({ what, says }: Mistake, message: string): void {
  for (const text of says) expect(message, what).toMatch(text)
  for (const text of never) expect(message, what).not.toMatch(text)
  expect(message.trim().split('\n').length, `${what}: lines of ${message}`).toBeLessThanOrEqual(mostLines)
}
