/** One call at a time; all that are made meanwhile share the next, which sees what happened before each of them. */
export function coalesced(call: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let following: Promise<void> | undefined
  return function run(): Promise<void> {
    if (!running) return (running = call().finally(() => (running = undefined)))
    return (following ??= running
      .catch(() => {})
      .then(() => {
        following = undefined
        return run()
      }))
  }
}
