import type { JobRecord } from './job.js'

/**
 * Where the kept work of running jobs is stored: `checkpoints/<job>/<token>-<nonce>/part-<number>`, and for the steps
 * of a workflow `.../work-<step>/part-<number>`, `.../step-<step>/<file>` and `.../value-<step>`.
 */
export const checkpointsPrefix = 'checkpoints/'

/** Everything that the attempts of a job have kept. */
export function jobCheckpointPrefix(jobId: string): string {
  return `${checkpointsPrefix}${jobId}/`
}

/** What one claim keeps. Its worker, even a superseded one, writes nothing outside. */
export function claimCheckpointPrefix({ id, token, lease }: Pick<JobRecord, 'id' | 'token' | 'lease'>): string {
  return `${jobCheckpointPrefix(id)}${token}-${lease?.nonce ?? ''}/`
}

/** @param work the step that is in progress, and what it does: each has parts of its own. Empty: the whole run. */
export function partKey(claimPrefix: string, part: number, work = ''): string {
  return `${claimPrefix}${work && `work-${work}/`}part-${part}`
}

/** A downloaded input, kept next to the parts because its address may no longer work later. */
export function keptInputKey(claimPrefix: string, index: number): string {
  return `${claimPrefix}input-${index}`
}

/** A file of a finished step. */
export function stepFileKey(claimPrefix: string, step: string, file: string): string {
  return `${claimPrefix}step-${step}/${file}`
}

/** What a finished step returned, if it is too long for the job's record. */
export function stepValueKey(claimPrefix: string, step: string): string {
  return `${claimPrefix}value-${step}`
}

/** `undefined` for a key of another form. */
export function jobOfCheckpoint(key: string): string | undefined {
  return /^checkpoints\/([^/]+)\//.exec(key)?.[1]
}

/**
 * The keys that make up the job's checkpoint, out of everything that its claims kept: the parts of each unit of work.
 * Each claim continued from parts 0 to n - 1, which never change, and kept part n and later ones; these supersede the
 * parts that earlier claims kept from n on.
 */
export function checkpointChain(keys: readonly string[]): {
  chains: Map<string, string[]>
  inputs: Map<number, string>
} {
  const works = new Map<string, Claims>()
  const inputs = new Map<number, { token: number; key: string }>()
  for (const key of keys) {
    const [, claim = '', digits, work = '', type, number] =
      /^checkpoints\/[^/]+\/((\d+)-[^/]*)\/(?:work-([^/]+)\/)?(part|input)-(\d+)$/.exec(key) ?? []
    const token = Number(digits)
    if (type === 'part') {
      const claims = works.get(work) ?? new Map()
      const own = claims.get(claim) ?? { token, parts: new Map() }
      works.set(work, claims.set(claim, { token, parts: own.parts.set(Number(number), key) }))
    } else if (type && token >= (inputs.get(Number(number))?.token ?? 0)) inputs.set(Number(number), { token, key })
  }
  return {
    chains: new Map([...works].map(([work, claims]) => [work, chainOf(claims)])),
    inputs: new Map([...inputs].map(([number, { key }]) => [number, key])),
  }
}

type Claims = Map<string, { token: number; parts: Map<number, string> }>

function chainOf(claims: Claims): string[] {
  let parts: string[] = []
  for (const { parts: own } of [...claims.values()].sort((a, b) => a.token - b.token)) {
    const first = Math.min(...own.keys())
    if (first > parts.length) continue
    parts = parts.slice(0, first)
    for (let part = first, key = own.get(part); key !== undefined; key = own.get(++part)) parts.push(key)
  }
  return parts
}
