/** Work in progress, counted by application. */
export class Lanes {
  readonly #perApplication: number
  readonly #work = new Set<Promise<void>>()
  readonly #counts = new Map<string, number>()

  /** @param perApplication most of it for one application */
  constructor(perApplication: number) {
    this.#perApplication = perApplication
  }

  get size(): number {
    return this.#work.size
  }

  /** Applications with their full share. */
  get full(): string[] {
    return [...this.#counts.keys()].filter((app) => !this.hasRoom(app))
  }

  hasRoom(app: string): boolean {
    return (this.#counts.get(app) ?? 0) < this.#perApplication
  }

  /** @param work never rejects */
  add(app: string, work: Promise<void>): void {
    this.#counts.set(app, (this.#counts.get(app) ?? 0) + 1)
    const entry = work.finally(() => {
      this.#work.delete(entry)
      const count = (this.#counts.get(app) ?? 1) - 1
      if (count > 0) this.#counts.set(app, count)
      else this.#counts.delete(app)
    })
    this.#work.add(entry)
  }

  /** Resolves when some of the work has ended. */
  async next(): Promise<void> {
    await Promise.race(this.#work)
  }
}
