/** Runs one call at a time; calls made meanwhile share the next, which sees everything that happened before them. */
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
