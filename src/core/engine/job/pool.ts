import { z } from 'zod'

/** Most units of an amount: a claim lists one label for every number of units. */
const mostUnits = 256

/**
 * A resource that a worker has or a job needs, such as `gpu` or `model:htdemucs`; or an amount that running jobs share,
 * in whole units: `gpuMemory=24` of a worker, `gpuMemory=6` of a job.
 */
export const labelSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9._:-]{1,60}(=[1-9][0-9]{0,2})?$/,
    'must have 1 to 60 letters, digits, ".", "_", ":" and "-", and may end with "=" and a number of units',
  )
  .refine((label) => (amountOf(label)?.units ?? 0) <= mostUnits, `may have at most ${mostUnits} units: use larger ones`)

/** Joins the labels that a job needs: sorted, separated by spaces. Empty: any worker may take it. */
export function poolOf(needs: readonly string[]): string {
  return [...new Set(needs)].sort().join(' ')
}

export function labelsOf(pool: string): string[] {
  return pool === '' ? [] : pool.split(' ')
}

/** Whether a worker with these labels may take a job of the pool. `undefined`: it may take any job. */
export function servesPool(labels: readonly string[] | undefined, pool: string): boolean {
  return labels === undefined || labelsOf(pool).every((label) => labels.includes(label) || hasUnits(labels, label))
}

/** Whether any label is an amount that running jobs share. */
export function hasAmounts(labels: readonly string[]): boolean {
  return labels.some((label) => amountOf(label) !== undefined)
}

/**
 * The labels that a worker offers while it runs jobs of these pools. An amount becomes a label for every number of
 * units up to those that are free, so that a store only compares labels.
 */
export function offered(labels: readonly string[], running: readonly string[]): string[] {
  return labels.flatMap((label) => {
    const amount = amountOf(label)
    if (!amount) return [label]
    const free = running.reduce((left, pool) => left - unitsIn(labelsOf(pool), amount.name), amount.units)
    return Array.from({ length: Math.max(0, free) }, (_, unit) => `${amount.name}=${unit + 1}`)
  })
}

/** Labels that a worker offers to the steps of a job: of amounts, only those that the job was claimed with. */
export function offersTo(pool: string, labels: readonly string[]): string[] {
  return [...labels.filter((label) => !hasAmounts([label])), ...labelsOf(pool)]
}

function hasUnits(labels: readonly string[], label: string): boolean {
  const needed = amountOf(label)
  return needed !== undefined && unitsIn(labels, needed.name) >= needed.units
}

/** The steps of a composition run one after another, so a job needs the most that any one of them needs. */
function unitsIn(labels: readonly string[], name: string): number {
  return labels.reduce((most, label) => {
    const amount = amountOf(label)
    return amount?.name === name ? Math.max(most, amount.units) : most
  }, 0)
}

function amountOf(label: string): { name: string; units: number } | undefined {
  const at = label.indexOf('=')
  return at < 0 ? undefined : { name: label.slice(0, at), units: Number(label.slice(at + 1)) }
}
