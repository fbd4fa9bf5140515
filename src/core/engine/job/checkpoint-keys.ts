import type { JobRecord } from './job.js'

/** Where the checkpoints of running jobs lie in a blob store: `checkpoints/<job>/<token>-<nonce>/part-<number>`. */
export const checkpointsPrefix = 'checkpoints/'

/** Everything that the attempts of a job have kept. */
export function jobCheckpointPrefix(jobId: string): string {
  return `${checkpointsPrefix}${jobId}/`
}

/** What one claim keeps. Its worker, even a superseded one, writes nothing outside. */
export function claimCheckpointPrefix({ id, token, lease }: Pick<JobRecord, 'id' | 'token' | 'lease'>): string {
  return `${jobCheckpointPrefix(id)}${token}-${lease?.nonce ?? ''}/`
}

export function partKey(claimPrefix: string, part: number): string {
  return `${claimPrefix}part-${part}`
}

/** A downloaded input, kept next to the parts because its address may no longer work later. */
export function keptInputKey(claimPrefix: string, index: number): string {
  return `${claimPrefix}input-${index}`
}

/** A file of a finished step. */
export function stepFileKey(claimPrefix: string, step: string, file: string): string {
  return `${claimPrefix}step-${step}/${file}`
}

/** `undefined` for a key of another form. */
export function jobOfCheckpoint(key: string): string | undefined {
  return /^checkpoints\/([^/]+)\//.exec(key)?.[1]
}

/**
 * The keys that make up the job's checkpoint, out of everything that its claims kept. Each claim continued from parts 0
 * to n - 1, which never change, and kept part n and later ones; these supersede the parts that earlier claims kept from
 * n on.
 */
export function checkpointChain(keys: readonly string[]): { parts: string[]; inputs: Map<number, string> } {
  const claims = new Map<string, { token: number; parts: Map<number, string> }>()
  const inputs = new Map<number, { token: number; key: string }>()
  for (const key of keys) {
    const [, claim, token, type, number] = /^checkpoints\/[^/]+\/((\d+)-[^/]*)\/(part|input)-(\d+)$/.exec(key) ?? []
    if (claim === undefined) continue
    const own = claims.get(claim) ?? { token: Number(token), parts: new Map<number, string>() }
    claims.set(claim, own)
    if (type === 'part') own.parts.set(Number(number), key)
    else if (own.token >= (inputs.get(Number(number))?.token ?? 0))
      inputs.set(Number(number), { token: own.token, key })
  }
  let parts: string[] = []
  for (const { parts: own } of [...claims.values()].sort((a, b) => a.token - b.token)) {
    const first = Math.min(...own.keys())
    if (first > parts.length) continue
    parts = parts.slice(0, first)
    for (let part = first, key = own.get(part); key !== undefined; key = own.get(++part)) parts.push(key)
  }
  return { parts, inputs: new Map([...inputs].map(([number, { key }]) => [number, key])) }
}
