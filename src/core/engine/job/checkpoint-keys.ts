import type { JobRecord } from './job.js'

/** Where the checkpoints of running jobs lie in a blob store: `checkpoints/<job>/<token>-<nonce>/part-<number>`. */
export const checkpointsPrefix = 'checkpoints/'

/** Everything that the attempts of a job have kept. */
export function jobCheckpointPrefix(jobId: string): string {
  return `${checkpointsPrefix}${jobId}/`
}

/** What one claim keeps. Its worker, also a superseded one, writes nothing outside. */
export function claimCheckpointPrefix({ id, token, lease }: Pick<JobRecord, 'id' | 'token' | 'lease'>): string {
  return `${jobCheckpointPrefix(id)}${token}-${lease?.nonce ?? ''}/`
}

export function partKey(claimPrefix: string, part: number): string {
  return `${claimPrefix}part-${part}`
}

/** A downloaded input that is kept beside the parts, for its address may no longer answer later. */
export function keptInputKey(claimPrefix: string, index: number): string {
  return `${claimPrefix}input-${index}`
}

/** `undefined` for a key of another form. */
export function jobOfCheckpoint(key: string): string | undefined {
  return /^checkpoints\/([^/]+)\//.exec(key)?.[1]
}

/**
 * The keys that make up the job's checkpoint, out of all that its claims have kept. Each claim went on from parts 0 to n - 1, which are
 * never changed, and kept part n and the next ones; what an earlier claim kept from n on is superseded.
 */
export function checkpointChain(keys: readonly string[]): { parts: string[]; inputs: Map<number, string> } {
  const claims = new Map<string, { token: number; parts: Map<number, string> }>()
  const inputs = new Map<number, { token: number; key: string }>()
  for (const key of keys) {
    const [, claim, token, kind, number] = /^checkpoints\/[^/]+\/((\d+)-[^/]*)\/(part|input)-(\d+)$/.exec(key) ?? []
    if (claim === undefined) continue
    const own = claims.get(claim) ?? { token: Number(token), parts: new Map<number, string>() }
    claims.set(claim, own)
    if (kind === 'part') own.parts.set(Number(number), key)
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
