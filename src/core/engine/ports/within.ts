/** Settles as the promise does, or rejects with the result of `error` after `timeoutMs`. Later results are ignored. */
export function within<Value>(promise: Promise<Value>, timeoutMs: number, error: () => Error): Promise<Value> {
  promise.catch(() => {})
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(error()), timeoutMs)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
