/** Caches the last result of `read` for a while, but not failures. */
export function remembered<Result>(read: () => Promise<Result>, forMs: number): () => Promise<Result> {
  let last: { at: number; found: Promise<Result> } | undefined
  return () => {
    const now = performance.now()
    if (!last || now > last.at + forMs) {
      const found = read()
      last = { at: now, found }
      found.catch(() => (last = undefined))
    }
    return last.found
  }
}
