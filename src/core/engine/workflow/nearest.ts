/** The most likely candidate for a mistyped word; `undefined` if none is near. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: beginsAlike(word, candidate) ? 0 : editDistance(word, candidate) }))
    .sort((a, b) => a.distance - b.distance)
  const [best] = ranked
  return best && best.distance < word.length && best.distance <= mostEdits(best.candidate) ? best.candidate : undefined
}

const mostEdits = (candidate: string) => Math.max(2, Math.floor(candidate.length / 3))

/** `webhookUrl` probably means `webhook`; a candidate of one or two letters is no hint. */
function beginsAlike(word: string, candidate: string): boolean {
  return candidate.startsWith(word) || (candidate.length > 2 && word.startsWith(candidate))
}

/** Levenshtein distance, cut short for long words: clients may send words of 250 kB. */
function editDistance(a: string, b: string): number {
  if (a.length - b.length > mostEdits(b)) return Infinity
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [index, letter] of Array.from(a).entries()) {
    let left = index + 1
    let [diagonal = 0] = row
    const next = row.slice(1).map((above, column) => {
      left = Math.min(above + 1, left + 1, diagonal + (letter === b[column] ? 0 : 1))
      diagonal = above
      return left
    })
    row = [index + 1, ...next]
  }
  return row.at(-1) ?? 0
}
