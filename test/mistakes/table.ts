import { expect } from 'vitest'

/** A mistake and the contents of its message: what happened, what was expected or what to do, the given value. */
export interface Mistake {
  what: string
  /** The message must match all of these. */
  says: readonly RegExp[]
}

/** No message may contain a stack, a value that the user did not write, a secret, or a library's wording. */
const never = [
  /\n\s+at .+:\d+/,
  /\[object Object\]|\bundefined\b|NaN/,
  /s3cret/,
  /Invalid input:|Unrecognized key|ZodError|received|Cannot (read|destructure)/,
]
const mostLines = 3

/** @param message as shown to a newcomer */
export function expectToTeach({ what, says }: Mistake, message: string): void {
  for (const text of says) expect(message, what).toMatch(text)
  for (const text of never) expect(message, what).not.toMatch(text)
  expect(message.trim().split('\n').length, `${what}: lines of ${message}`).toBeLessThanOrEqual(mostLines)
}
