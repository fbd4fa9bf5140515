import { type Explanation, unreachable } from '../words/first-words.js'
import { later } from './later-parts.js'

/** Explains what went wrong with a request. The texts are loaded when they are first needed. */
export async function explained(error: unknown): Promise<Explanation> {
  try {
    return (await later.load()).explain(error)
  } catch {
    return { text: unreachable }
  }
}
