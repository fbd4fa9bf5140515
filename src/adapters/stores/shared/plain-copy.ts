/** A copy that shares nothing with its original: the value that a store which writes JSON would read back. */
export function plainCopy<Value>(value: Value): Value {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as Value)
}

/** Like `plainCopy`, for a value that is plain already, as in a store; takes a tenth of the time. */
export function copyOfPlain<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  return Array.isArray(value) ? (value.map(copyOfPlain) as Value) : withOwnFields({ ...value })
}

/** `copyOfPlain` for polled jobs: once V8 has copied objects of five shapes, each copy takes five times as long. */
export function copyOfJob<Job extends object>(job: Job): Job {
  return withOwnFields({ ...job })
}

function withOwnFields<Value extends object>(copy: Value): Value {
  const fields = copy as Record<string, unknown>
  // `Object.entries` takes five times as long.
  for (const name in fields) {
    const field = fields[name]
    if (typeof field === 'object' && field !== null) fields[name] = copyOfPlain(field)
  }
  return copy
}
