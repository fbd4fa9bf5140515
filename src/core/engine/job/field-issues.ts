import { StemworkError } from '../errors.js'

/** One invalid field of a client's request. */
export interface FieldIssue {
  path: string
  message: string
}

/** Bounds the list: a request may contain thousands of invalid values. */
const maxIssues = 20
const maxTextLength = 300

interface GivenIssue {
  path: readonly PropertyKey[]
  message: string
}

/** The first issues of a schema check, with bounded text. `prefix` goes before each path. */
export function fieldIssues(issues: readonly GivenIssue[], prefix: readonly string[] = []): FieldIssue[] {
  return issues.slice(0, maxIssues).map(({ path, message }) => ({
    path: shortened([...prefix, ...path].join('.')),
    message: shortened(message),
  }))
}

/** The issues in one line, for a message. @param total the number of issues, if not all are given. */
export function issuesText(issues: readonly FieldIssue[], total = issues.length): string {
  const shown = issues.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; ')
  return total > issues.length ? `${shown}; and ${total - issues.length} more` : shown
}

/** The error for an invalid request. @param what begins the message @param advice ends it */
export function invalidParams(
  what: string,
  found: readonly GivenIssue[],
  { prefix = [], advice = '' }: { prefix?: readonly string[]; advice?: string } = {},
): StemworkError {
  const issues = fieldIssues(found, prefix)
  const message = `${what}: ${issuesText(issues, found.length)}.${advice}`
  return new StemworkError('INVALID_PARAMS', message, { details: { issues } })
}

function shortened(text: string): string {
  return text.length > maxTextLength ? `${text.slice(0, maxTextLength)}...` : text
}
