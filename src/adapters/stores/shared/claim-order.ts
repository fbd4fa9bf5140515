import { Agenda, type AgendaEntry } from './due-queue.js'

/** What waits, in the order in which it is claimed: applications take turns, and inside one the first due comes first. */
export class ClaimOrder<Item> {
  /** A Map iterates in insertion order: the order of coming here, that of the last turn below. */
  readonly #unserved = new Map<string, Agenda<Item>>()
  readonly #served = new Map<string, Agenda<Item>>()

  /** Enters the item, moves it, or (with null) takes it out; `entry` is what the last call for this item returned. */
  set(app: string, entry: AgendaEntry<Item> | undefined, item: Item, at: number | null): AgendaEntry<Item> | undefined {
    let agenda = this.#unserved.get(app) ?? this.#served.get(app)
    if (!agenda) {
      if (at === null) return undefined
      this.#unserved.set(app, (agenda = new Agenda()))
    }
    return agenda.set(entry, item, at)
  }

  /** The next item that is due, not in `taken` and of none of `exceptApps`. Counts as its application's turn. */
  take(now: number, taken: ReadonlySet<Item>, exceptApps: readonly string[]): Item | undefined {
    for (const agendas of [this.#unserved, this.#served]) {
      for (const [app, agenda] of agendas) {
        if (exceptApps.includes(app)) continue
        const item = firstDue(agenda, now, taken)
        if (item === undefined) {
          // All others that wait are served later than it was: nothing is lost by forgetting it.
          if (agenda.size === 0) agendas.delete(app)
          continue
        }
        agendas.delete(app)
        this.#served.set(app, agenda)
        return item
      }
    }
    return undefined
  }
}

/** The item that has been due longest and is not in `taken`. */
export function firstDue<Item>(agenda: Agenda<Item>, now: number, taken: ReadonlySet<Item>): Item | undefined {
  if (taken.size === 0) return agenda.first(now)
  return agenda.due(now, taken.size + 1).find((item) => !taken.has(item))
}
