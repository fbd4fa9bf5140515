import { StemworkError } from '../errors.js'

const maxLength = 8_000
const maxDepth = 8

/**
 * Describes an error in full for the operator: class, code, message and stack, then the same for its causes; at most
 * 8,000 characters. The text may contain paths and addresses and is not for clients.
 */
export function errorText(error: unknown): string {
  // A program's message may quote its input, whose escape sequences the operator's terminal would execute.
  const text = described(error, 0).replace(/[^\P{Cc}\n\t]/gu, ' ')
  return text.length > maxLength ? `${text.slice(0, maxLength)}...` : text
}

/** Describes an error in one line, without stacks, for failures that are not the service's fault. */
export function errorLine(error: unknown): string {
  return inOneLine(errorText(error))
}

/** Converts an error's text to one line without stacks. */
export function inOneLine(text: string): string {
  return text
    .replace(/^ {4}at .*$/gm, '')
    .replace(/\s*\n\s*/g, ' ')
    .trim()
}

/**
 * Returns the error, or a substitute if reading it throws, as a getter or a Proxy may. Otherwise a later read (at the
 * end of the attempt, by a logger, for a span) would throw and keep the job from ending.
 */
export function readableError(error: unknown): unknown {
  try {
    errorText(error)
    return error
  } catch {
    const unreadable = new Error('an unreadable error was thrown: its text is not a string, or reading it throws')
    return withCause(error, unreadable) ?? unreadable
  }
}

/** Copies the error with a readable cause: the cause does not affect what the job shows. */
function withCause(error: unknown, cause: Error): StemworkError | undefined {
  try {
    if (!StemworkError.is(error)) return undefined
    const { code, message, reason, retryable, details } = error
    return new StemworkError(code, message, { reason, retryable, details, cause })
  } catch {
    return undefined
  }
}

function described(error: unknown, depth: number): string {
  if (!(error instanceof Error) && !StemworkError.is(error)) return typeof error === 'string' ? error : safeJson(error)
  const { name, message, stack, cause } = error
  const labels = labelsOf(error)
  // A stack begins with the name and the message as they were when the error was made.
  const frames = typeof stack === 'string' ? stack.slice(Math.max(0, stack.search(/^ {4}at /m))) : ''
  const own = `${name}${labels ? ` [${labels}]` : ''}: ${message}${/^ {4}at /.test(frames) ? `\n${frames}` : ''}`
  const inner = [
    ...(cause === undefined ? [] : [cause]),
    ...(error instanceof AggregateError ? (error.errors as unknown[]) : []),
  ]
  if (inner.length === 0) return own
  if (depth === maxDepth) return `${own}\ncaused by more`
  return [own, ...inner.map((each) => `caused by ${described(each, depth + 1)}`)].join('\n')
}

function labelsOf(error: Error): string {
  const { code, reason } = error as { code?: unknown; reason?: unknown }
  return [code, reason].filter((label) => typeof label === 'string').join(' ')
}

function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}
