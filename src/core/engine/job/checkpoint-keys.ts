import type { JobRecord } from './job.js'

/**
 * Prefix of the kept work of running jobs: `checkpoints/<job>/<token>-<nonce>/part-<number>`, and for the steps of a
 * workflow `.../work-<step>/part-<number>`, `.../step-<step>/<file>` and `.../value-<step>`.
 */
export const checkpointsPrefix = 'checkpoints/'

/** Prefix of all work that the attempts of a job have kept. */
export function jobCheckpointPrefix(jobId: string): string {
  return `${checkpointsPrefix}${jobId}/`
}

/** Prefix of the work that one claim keeps. Its worker, even a superseded one, writes nothing outside. */
export function claimCheckpointPrefix({ id, token, lease }: Pick<JobRecord, 'id' | 'token' | 'lease'>): string {
  return `${jobCheckpointPrefix(id)}${token}-${lease?.nonce ?? ''}/`
}

/** @param work the unit of work, such as a step, to which the part belongs. Empty: the whole run. */
export function partKey(claimPrefix: string, part: number, work = ''): string {
  return `${claimPrefix}${work && `work-${work}/`}part-${part}`
}

/** Key of a downloaded input, kept next to the parts because its URL may stop working. */
export function keptInputKey(claimPrefix: string, index: number): string {
  return `${claimPrefix}input-${index}`
}

/** Key of a file of a finished step. */
export function stepFileKey(claimPrefix: string, step: string, file: string): string {
  return `${claimPrefix}step-${step}/${file}`
}

/** Key of a finished step's return value, if it is too long for the job's record. */
export function stepValueKey(claimPrefix: string, step: string): string {
  return `${claimPrefix}value-${step}`
}

/** Id of the job to which a checkpoint's key belongs; `undefined` for a key of another form. */
export function jobOfCheckpoint(key: string): string | undefined {
  return /^checkpoints\/([^/]+)\//.exec(key)?.[1]
}

/**
 * Selects the keys of a job's checkpoint from all keys that its claims kept: the parts of each unit of work, and the
 * inputs. Each claim continued from parts 0 to n - 1, which never change, and kept part n and later ones; these
 * supersede the parts that earlier claims kept from n on.
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
