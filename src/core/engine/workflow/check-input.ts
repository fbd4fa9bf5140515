import { z } from 'zod'
import { issueWords } from './issue-words.js'
import { nearest } from './nearest.js'

/** Bounds the list: input may have thousands of unknown names. */
const mostNamed = 3

export interface InputIssue {
  path: readonly PropertyKey[]
  message: string
}

/**
 * Checks a client's input, with our own messages: a missing value is called missing, and an unknown name is reported
 * with the nearest name or the known ones.
 */
export function checkInput<Schema extends z.ZodType>(
  schema: Schema,
  given: unknown,
): { success: true; data: z.output<Schema> } | { success: false; issues: InputIssue[] } {
  const checked = schema.safeParse(given, { error: issueWords })
  if (checked.success) return { success: true, data: checked.data }
  const issues = checked.error.issues.flatMap((issue): InputIssue[] =>
    issue.code === 'unrecognized_keys' ? unknownNames(issue, schema) : [issue],
  )
  return { success: false, issues }
}

function unknownNames(issue: z.core.$ZodIssueUnrecognizedKeys, schema: z.ZodType): InputIssue[] {
  const shape = shapeOf(memberAt(schema, issue.path))
  const known = shape && Object.keys(shape)
  const remedy = (key: string) => {
    const meant = known && nearest(key, known)
    if (meant !== undefined) return `the nearest name is ${meant}`
    return known?.length ? `expected only ${known.join(', ')}` : 'leave it out'
  }
  const named = issue.keys.slice(0, mostNamed)
  const rest = issue.keys.length - named.length
  return [
    ...named.map((key) => ({ path: [...issue.path, key], message: `is not known: ${remedy(key)}` })),
    ...(rest > 0 ? [{ path: issue.path, message: `has ${rest} more names that are not known` }] : []),
  ]
}

/** The schema at this path, without wrappers such as defaults. */
function memberAt(schema: z.ZodType | undefined, path: readonly PropertyKey[]): z.ZodType | undefined {
  let member = schema
  for (const key of path)
    member = withoutDefaults(
      member instanceof z.ZodArray ? (member.element as z.ZodType) : shapeOf(member)?.[String(key)],
    )
  return member
}

function withoutDefaults(schema: z.ZodType | undefined): z.ZodType | undefined {
  const isWrapped =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault
  return isWrapped ? withoutDefaults(schema.unwrap() as z.ZodType) : schema
}

/** The members of an object schema, if available. */
export function shapeOf(schema: z.ZodType | undefined): Record<string, z.ZodType> | undefined {
  return schema instanceof z.ZodObject ? schema.shape : undefined
}

/** The common part of a zod error and of a result of `checkInput`. */
interface SchemaError {
  issues: readonly { path: readonly PropertyKey[]; message: string }[]
}

/** The issues of a schema check as `path: message`; `whole` is the path of an issue of the value itself. */
export function issueTexts({ issues }: SchemaError, whole: string): string[] {
  return issues.map(({ path, message }) => `${path.join('.') || whole}: ${message}`)
}

/** The first issue, for messages that name one. */
export function firstIssueText(error: SchemaError, whole: string): string {
  return issueTexts(error, whole)[0] ?? `${whole}: is not valid`
}

/** The id of a definition as ` "service/mine"`; empty if it has none. */
export function idWords(value: unknown): string {
  const { id } = (value ?? {}) as { id?: unknown }
  return id === undefined ? '' : ` ${JSON.stringify(id)}`
}
