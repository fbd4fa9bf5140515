import { z } from 'zod'
import type { JobReference } from '../../../core/engine/ports/job-queue.js'

/**
 * References of one application that were published at the same moment, on their way through Redis together: what a reference
 * costs there is shared by up to `maxReferences`. The first is served at `turn`, each other one turn later; without fairness there
 * are no turns, and every reference goes alone.
 */
export interface Ring {
  app: string
  ids: string[]
  turn?: number
}

export const ringSchema = z.object({ app: z.string(), ids: z.array(z.string()), turn: z.number().optional() })

const maxReferences = 64

/** Gathers references with their turns, in their order; only turns that follow one another go together. */
export function gathered(references: readonly JobReference[], turns: readonly (number | undefined)[]): Ring[] {
  const rings: Ring[] = []
  const open = new Map<string, Ring>()
  references.forEach(({ id, app }, place) => {
    const turn = turns[place]
    const ring = open.get(app)
    if (ring?.turn !== undefined && turn === ring.turn + ring.ids.length && ring.ids.length < maxReferences) {
      ring.ids.push(id)
      return
    }
    const next: Ring = { app, ids: [id], turn }
    open.set(app, next)
    rings.push(next)
  })
  return rings
}

/** The references of a ring from the given place on, each on its own and at its own turn. */
export function taken(ring: Ring, from: number): Ring[] {
  return ring.ids.slice(from).map((id, place) => ({
    app: ring.app,
    ids: [id],
    turn: ring.turn === undefined ? undefined : ring.turn + from + place,
  }))
}
