import { z } from 'zod'

/** What a worker has, or a job needs: `gpu`, `model:htdemucs`. */
export const labelSchema = z
  .string()
  .regex(/^[A-Za-z0-9._:-]{1,60}$/, 'must have 1 to 60 letters, digits, ".", "_", ":" and "-"')

/** The labels that a job needs, as one text: sorted and separated by spaces. Empty: any worker. */
export function poolOf(needs: readonly string[]): string {
  return [...new Set(needs)].sort().join(' ')
}

export function labelsOf(pool: string): string[] {
  return pool === '' ? [] : pool.split(' ')
}

/** Whether a worker with these labels may take a job of the pool. Without labels, any may. */
export function servesPool(labels: readonly string[] | undefined, pool: string): boolean {
  return labels === undefined || labelsOf(pool).every((label) => labels.includes(label))
}
