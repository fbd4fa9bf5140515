/**
 * Caches the last result of `read` for a while, but not failures.
 *
 * @param staleMs up to this age, a call returns the old result at once and reads the next one. Default: `forMs`.
 */
export function remembered<Result>(read: () => Promise<Result>, forMs: number, staleMs = forMs): () => Promise<Result> {
  let last: { at: number; found: Promise<Result> } | undefined
  let next: Promise<Result> | undefined
  return () => {
    const now = performance.now()
    if (last && now <= last.at + forMs) return last.found
    if (!next) {
      const found = (next = read())
      const isOver = () => (next = undefined)
      found.then(() => (last = { at: now, found }), isOver).then(isOver, isOver)
    }
    return last && now <= last.at + staleMs ? last.found : next
  }
}
