/** The part of a zod error, or of what `checkInput` found, that is read here. */
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

/** ` "service/mine"`: the id of what should have one; nothing where it has none. */
export function idWords(value: unknown): string {
  const { id } = (value ?? {}) as { id?: unknown }
  return id === undefined ? '' : ` ${JSON.stringify(id)}`
}
