import { type Explanation, unreachable } from './first-words.js'
import { later } from './later-parts.js'

/** What went wrong with a request, in words that are loaded when they are needed first. */
export async function explained(error: unknown): Promise<Explanation> {
  try {
    return (await later.load()).explain(error)
  } catch {
    return { text: unreachable }
  }
}
