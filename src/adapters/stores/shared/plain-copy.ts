/** A copy that shares nothing with its original: what a store that writes JSON would read back. */
export function plainCopy<Value>(value: Value): Value {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as Value)
}
