/** Serialises lists: one at a time per application, in the order of the requests. */
export class ListQueue {
  /** The last list of each application with any; these never reject. */
  readonly #last = new Map<string, Promise<void>>()

  async run<Result>(app: string, work: () => Promise<Result>): Promise<Result> {
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
