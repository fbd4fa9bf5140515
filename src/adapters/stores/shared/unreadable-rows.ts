import { type StemworkError, storeUnavailable } from '../../../core/engine/errors.js'

/** Beyond this many it is not damage: the records are of another version. */
const maxRows = 10_000
/** Unreadable rows are tried again after this time: they may have been repaired. */
const forgetAfterMs = 10 * 60 * 1000

/**
 * Jobs whose rows hold no record that this version can read. Searches for the next job or for due jobs leave them out,
 * or else they would be found first every time and hide all others.
 */
export class UnreadableRows {
  #since = 0
  readonly #ids = new Set<string>()

  get ids(): string[] {
    if (performance.now() > this.#since + forgetAfterMs) this.#ids.clear()
    return [...this.#ids]
  }

  /**
   * Returns the readable jobs; notes the other rows. @throws StemworkError `STORE_UNAVAILABLE` when these are too many.
   */
  readable<Row, Job>(rows: readonly Row[], idOf: (row: Row) => string, parse: (row: Row) => Job): Job[] {
    return rows.flatMap((row) => {
      try {
        return [parse(row)]
      } catch {
        this.#note(idOf(row))
        return []
      }
    })
  }

  #note(id: string): void {
    if (this.#ids.size >= maxRows) throw tooMany()
    if (this.#ids.size === 0) this.#since = performance.now()
    this.#ids.add(id)
  }
}

function tooMany(): StemworkError {
  return storeUnavailable(
    `More than ${maxRows} job records cannot be read. Were they written by a newer version of the library? Start ` +
      'that version.',
  )
}
