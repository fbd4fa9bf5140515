import type { z } from 'zod'

/**
 * Describes to clients what is wrong with a value: `must be at least 8000`. For issues without a message in the schema.
 */
export function issueWords(issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined) return `is missing${expectedWords(issue)}`
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${typeWords[issue.expected] ?? issue.expected}, not ${kindOf(issue.input)}`
    case 'too_small':
      return `must ${boundWords(issue.origin, issue.inclusive === false ? 'more than' : 'at least', issue.minimum)}`
    case 'too_big':
      return `must ${boundWords(issue.origin, issue.inclusive === false ? 'less than' : 'at most', issue.maximum)}`
    case 'invalid_value':
      return `must be ${choiceWords(issue.values)}${givenWords(issue.input)}`
    case 'invalid_format':
      return `must ${formatWords[issue.format] ?? 'have the form that is described'}${givenWords(issue.input)}`
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_key':
      return `has a name that is not allowed: it ${issue.issues[0]?.message}`
    default:
      return otherIssueWords(issue)
  }
}

function otherIssueWords(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_union') {
    // The kinds of a union that is told apart by one member.
    if (Array.isArray(issue.options)) return `must be ${choiceWords(issue.options)}`
    return `has none of the allowed forms: ${issue.errors.map(formWords).join(', or ')}`
  }
  return otherWords[issue.code] ?? 'is not valid'
}

/** Describes why a value does not have one of the forms of a union. */
function formWords(issues: readonly z.core.$ZodIssue[]): string {
  return issues.map(({ path, message }) => [...path, message].join(' ')).join(' and ')
}

const typeWords: Record<string, string> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'a list',
  tuple: 'a list',
  null: 'null',
  function: 'a function',
}

const otherWords: Record<string, string> = {
  unrecognized_keys: 'has names that are not known',
  invalid_element: 'has an entry that is not allowed',
}

const formatWords: Record<string, string> = {
  url: 'be a complete URL, such as https://example.org/song.mp3',
  datetime: 'be a time in ISO 8601, such as 2025-01-31T12:00:00Z',
  uuid: 'be a UUID',
  guid: 'be a UUID',
  email: 'be an e-mail address',
}

/** The given value as `, not 7`, if it is short enough to be recognized. */
export function givenWords(value: unknown): string {
  if (typeof value === 'number') return `, not ${value}`
  return typeof value === 'string' && value.length <= mostShown ? `, not ${JSON.stringify(value)}` : ''
}

const mostShown = 60

function expectedWords(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type') return `: expected ${typeWords[issue.expected] ?? issue.expected}`
  return issue.code === 'invalid_value' ? `: expected ${choiceWords(issue.values)}` : ''
}

function choiceWords(values: readonly unknown[]): string {
  const [only] = values
  const words = values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
  return values.length === 1 ? JSON.stringify(only) : `one of ${words.join(', ')}`
}

function boundWords(origin: string, relation: string, bound: number | bigint): string {
  if (origin === 'string') return `have ${relation} ${bound} ${bound === 1 ? 'character' : 'characters'}`
  if (origin === 'array' || origin === 'set' || origin === 'object' || origin === 'map')
    return `have ${relation} ${bound} ${bound === 1 ? 'entry' : 'entries'}`
  return `be ${relation} ${bound}`
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string' && value.length <= mostShown) return JSON.stringify(value)
  if (typeof value === 'number') return Number.isInteger(value) ? 'a whole number' : `the number ${value}`
  return typeof value === 'boolean' ? String(value) : (typeWords[typeof value] ?? typeof value)
}
