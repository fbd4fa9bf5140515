import { z } from 'zod'

/** Thousands of unknown names need not all be listed. */
const mostNamed = 3

export interface ParamIssue {
  path: readonly PropertyKey[]
  message: string
}

/**
 * Checks params by the schema of a workflow. What is missing is named as such; a name that is not known, with those
 * that are.
 */
export function checkParams(
  schema: z.ZodType,
  given: unknown,
): { success: true; data: Record<string, unknown> } | { success: false; issues: ParamIssue[] } {
  const checked = schema.safeParse(given, { error: missing })
  if (checked.success) return { success: true, data: checked.data as Record<string, unknown> }
  const shape = shapeOf(schema)
  const issues = checked.error.issues.flatMap((issue): ParamIssue[] => {
    if (issue.code !== 'unrecognized_keys') return [issue]
    const expected =
      issue.path.length === 0 && shape ? `expected only ${Object.keys(shape).join(', ')}` : 'leave it out'
    const named = issue.keys.slice(0, mostNamed)
    const rest = issue.keys.length - named.length
    return [
      ...named.map((key) => ({ path: [...issue.path, key], message: `is not known: ${expected}` })),
      ...(rest > 0 ? [{ path: issue.path, message: `has ${rest} more names that are not known` }] : []),
    ]
  })
  return { success: false, issues }
}

/** For messages that the schema itself does not set. */
function missing(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'invalid_type' || issue.input !== undefined) return undefined
  return `is missing: expected ${issue.expected}`
}

/** The members of an object schema, if available. */
export function shapeOf(schema: z.ZodType): Record<string, z.ZodType> | undefined {
  return schema instanceof z.ZodObject ? schema.shape : undefined
}
