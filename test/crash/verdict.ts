import type { JobRecord } from '../../src/core/engine/job/job.js'
import type { SubmittedJob } from './client.js'
import type { Hit } from './faults.js'
import type { LedgerEntry as UseEntry } from '../../src/core/engine/job/ledger.js'
import type { LedgerEntry } from './ledger.js'
import { nextField } from './other-build.js'

export interface Evidence {
  submitted: readonly SubmittedJob[]
  /** Result texts that clients downloaded, in the order of the jobs. */
  texts: readonly Record<string, string>[]
  hits: readonly Hit[]
  records: readonly JobRecord[]
  ledger: readonly LedgerEntry[]
  /** Usage of jobs according to the store's own ledger. */
  uses: readonly UseEntry[]
  /** Keys of all result files that exist after a sweep. */
  files: readonly string[]
  pidsOfOtherBuild: ReadonlySet<number>
}

/** All except the first four have to be 0. */
export interface Verdict {
  submitted: number
  terminal: number
  /** Jobs that FAILED as expected: bad input, or a worker hit in each attempt. */
  failedWithCause: number
  /** Jobs created by one version and run by the other, at least once. */
  sharedByVersions: number
  /** Submissions that created two jobs, and jobs that ended twice. */
  acceptedTwice: number
  failedWithoutCause: number
  /** Jobs that had ended and were later not ended. */
  revived: number
  /** Result files that no job lists. */
  orphanBlobs: number
  /** Jobs whose result files are missing or have other contents. */
  wrongResults: number
  /** Records that lost a field that only the version of their creator knows. */
  fieldsLost: number
  stuck: number
  /** Ended jobs whose entry in the usage ledger is missing, duplicated or different from the record. */
  usesWrong: number
  /** Messages about the problems. */
  problems: string[]
}

export function judge({ submitted, texts, hits, records, ledger, uses, files, pidsOfOtherBuild }: Evidence): Verdict {
  const problems: string[] = []
  const known = new Map(records.map((job) => [job.id, job]))
  const entries = new Map<string, LedgerEntry[]>()
  for (const entry of ledger) entries.set(entry.job, [...(entries.get(entry.job) ?? []), entry])
  const count = <Item>(items: readonly Item[], problemOf: (item: Item) => string | undefined) => {
    const found = items.flatMap((item) => problemOf(item) ?? [])
    problems.push(...found)
    return found.length
  }
  const entriesOf = (id: string, ...kinds: LedgerEntry['kind'][]) =>
    (entries.get(id) ?? []).filter(({ kind }) => kinds.includes(kind))
  const jobOf = ({ ids: [id = ''] }: SubmittedJob) => known.get(id)

  const submittedIds = new Set(submitted.flatMap(({ ids }) => [...ids]))
  const failed = submitted.filter((job) => jobOf(job)?.status === 'FAILED')
  const isCaused = (job: SubmittedJob) => {
    const record = jobOf(job)
    if (job.isBad) return record?.error?.reason === 'decode_failed'
    const claims = entriesOf(record?.id ?? '', 'claimed')
    // The last claim only recorded the loss of the earlier attempts.
    const attempts = claims.slice(0, -1).map((claim, index) => ({ claim, endedAt: claims[index + 1]?.at ?? 0 }))
    return record?.error?.reason === 'worker_lost' && attempts.every((attempt) => wasHit(attempt, hits))
  }
  const outputs = new Set(records.flatMap((job) => Object.values(job.outputs ?? {}).map(({ key }) => key)))

  return {
    submitted: submitted.length,
    terminal: submitted.filter((job) => ['SUCCEEDED', 'FAILED'].includes(jobOf(job)?.status ?? '')).length,
    failedWithCause: failed.filter(isCaused).length,
    sharedByVersions: submitted.filter((job) => {
      const id = jobOf(job)?.id ?? ''
      const isOfOther = entriesOf(id, 'made with next field').length > 0
      return entriesOf(id, 'claimed').some(({ pid }) => pidsOfOtherBuild.has(pid) !== isOfOther)
    }).length,
    usesWrong: count(records, (job) => {
      const found = uses.filter(({ jobId }) => jobId === job.id).map((entry) => JSON.stringify(entry))
      const wanted = job.settlement ? [JSON.stringify(job.settlement)] : []
      const isRight = found.length === wanted.length && found[0] === wanted[0]
      return isRight ? undefined : `${job.id} has ${found.length} entries in the ledger of use`
    }),
    acceptedTwice:
      count(submitted, ({ number, ids }) =>
        ids.size === 1 ? undefined : `submit ${number} made ${[...ids].join(', ')}`,
      ) +
      count(records, ({ id }) => (submittedIds.has(id) ? undefined : `job ${id} was made, and nobody was told`)) +
      count(records, ({ id }) => (entriesOf(id, 'ended').length > 1 ? `job ${id} ended twice` : undefined)),
    failedWithoutCause:
      count(failed, (job) => {
        const { id = '', error } = jobOf(job) ?? {}
        const claims = entriesOf(id, 'claimed').map((claim) => [
          claim.pid,
          claim.at,
          hits.filter(({ pid }) => pid === claim.pid),
        ])
        return isCaused(job) ? undefined : `job ${id}: ${error?.reason} ${error?.message} ${JSON.stringify(claims)}`
      }) +
      count(submitted, (job) =>
        job.isBad && jobOf(job)?.status === 'SUCCEEDED' ? `job ${jobOf(job)?.id} succeeded with bad input` : undefined,
      ),
    revived: count(records, ({ id }) => (entriesOf(id, 'revived').length > 0 ? `job ${id} was revived` : undefined)),
    orphanBlobs: count(files, (key) => (outputs.has(key) ? undefined : `${key} belongs to nothing`)),
    wrongResults: count(submitted, (job) => {
      const isDone = jobOf(job)?.status === 'SUCCEEDED'
      const text = texts[submitted.indexOf(job)]
      const isRight =
        text?.first === (job.upload ?? `upload of ${job.number}\n`) && text.second === `result of ${job.number}\n`
      return isDone && !isRight ? `job ${jobOf(job)?.id} has ${JSON.stringify(text)}` : undefined
    }),
    fieldsLost: count(records, (job) =>
      entriesOf(job.id, 'made with next field').length > 0 &&
      (job as Record<string, unknown>)[nextField.name] !== nextField.value
        ? `job ${job.id} lost ${nextField.name}`
        : undefined,
    ),
    stuck: count(submitted, (job) => {
      const record = jobOf(job)
      if (!record) return `submit ${job.number} was acknowledged and is lost`
      return record.completedAt === null
        ? `job ${record.id} is ${record.status}, ${JSON.stringify(record.lease)}`
        : undefined
    }),
    problems,
  }
}

/** Whether a fault hit the attempt's process before the next worker took over the job. */
function wasHit({ claim, endedAt }: { claim: LedgerEntry; endedAt: number }, hits: readonly Hit[]): boolean {
  return hits.some(
    ({ pid, from, until }) => (pid === undefined || pid === claim.pid) && from <= endedAt && until >= claim.at,
  )
}
