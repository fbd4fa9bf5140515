import { type Remedies, runHistory } from './history.js'

/** The first history with a violation, among `histories` that start with this seed. */
export async function firstViolation(
  remedies: Remedies,
  { seed: first, histories }: { seed: number; histories: number },
): Promise<{ seed: number; violations: string[] } | undefined> {
  for (let seed = first; seed < first + histories; seed++) {
    const { violations } = await runHistory(seed, remedies)
    if (violations.length > 0) return { seed, violations }
  }
  return undefined
}
