/** The promise, or after `timeoutMs` a rejection with what `error` makes. What the promise does later is ignored. */
export function within<Value>(promise: Promise<Value>, timeoutMs: number, error: () => Error): Promise<Value> {
  promise.catch(() => {})
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(error()), timeoutMs)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
