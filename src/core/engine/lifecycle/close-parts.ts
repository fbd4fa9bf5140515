import { StemworkError } from '../errors.js'
import type { Logger } from '../ports/logger.js'
import { within } from '../ports/within.js'

export interface ClosingPart {
  /** For operators. */
  name: string
  close(): Promise<unknown>
  /** Longest time to wait for it to close, in milliseconds. Default: 10 s. */
  timeoutMs?: number
}

const defaultTimeoutMs = 10_000

/**
 * Closes the groups one after another and the parts of a group at the same time. Closes every part, even if another one
 * fails or takes too long.
 *
 * @throws StemworkError `CLOSE_FAILED` naming the parts that are not closed, with their errors in an `AggregateError`
 * as cause.
 */
export async function closeParts(groups: readonly (readonly ClosingPart[])[], logger: Logger): Promise<void> {
  const failures: { name: string; error: unknown }[] = []
  const close = async ({ name, close, timeoutMs = defaultTimeoutMs }: ClosingPart) => {
    try {
      await within(close(), timeoutMs, () => new Error(`The ${name} did not close within ${timeoutMs} ms.`))
    } catch (error) {
      failures.push({ name, error })
      logger.error(
        { part: name, err: error },
        'A part of the engine could not be closed; the others are closed all the same.',
      )
    }
  }
  for (const group of groups) await Promise.all(group.map(close))
  if (failures.length === 0) return
  const names = failures.map(({ name }) => name)
  throw new StemworkError(
    'CLOSE_FAILED',
    `The engine was closed, but these parts failed to close: ${names.join(', ')}. Their connections or child ` +
      'processes may keep the process alive. Check the causes, and end the process if it does not exit.',
    { cause: new AggregateError(failures.map(({ error }) => error)), details: { parts: names } },
  )
}
