/** Lists that are being made: of each application one at a time, in the order in which they were asked for. */
export class ListTurns {
  /** The last one of each application that has any; these never reject. */
  readonly #last = new Map<string, Promise<void>>()

  async take<Result>(app: string, work: () => Promise<Result>): Promise<Result> {
    const own = (this.#last.get(app) ?? Promise.resolve()).then(work)
    const ended = own.then(
      () => {},
      () => {},
    )
    this.#last.set(app, ended)
    try {
      return await own
    } finally {
      if (this.#last.get(app) === ended) this.#last.delete(app)
    }
  }
}
