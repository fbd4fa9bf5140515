import type { BulkAction, BulkReport, JobEngine } from '../../core/engine/engine.js'
import type { JobQuery } from '../../core/engine/ports/job-store.js'
import { exitStatus, type Terminal } from '../command.js'
import { jobCount } from '../terminal/style.js'

const doneWords: Record<BulkAction, string> = { cancel: 'canceled', retry: 'queued again', delete: 'deleted' }
/** Jobs per call; the count is shown after each call. */
const pageSize = 100

/** Applies the action to every matching job, newest first; reports how many succeeded and why others were refused. */
export async function bulkJobs(
  engine: Pick<JobEngine<never>, 'bulk'>,
  action: BulkAction,
  query: JobQuery,
  { terminal: { stdout, stderr }, json }: { terminal: Terminal; json: boolean },
): Promise<number> {
  const refused: BulkReport['refused'] = []
  let done = 0
  let page: BulkReport | undefined
  do {
    page = await engine.bulk(action, query, { limit: pageSize, after: page?.next })
    done += page.done
    refused.push(...page.refused)
    if (page.next && !json) stderr.write(`${jobCount(done)} ${doneWords[action]} so far\n`)
  } while (page.next && !page.isFull)
  const isComplete = page.next === undefined
  if (json) stdout.write(`${JSON.stringify({ done, refused, complete: isComplete })}\n`)
  else {
    stdout.write(`${jobCount(done)} ${doneWords[action]}, ${refused.length} refused\n`)
    for (const [code, { jobs, message }] of reasonsOf(refused)) stdout.write(`  ${jobs} ${code}: ${message}\n`)
    if (!isComplete) stderr.write('stemwork: There is no room for more. Run the command again later for the rest.\n')
  }
  return refused.length === 0 && isComplete ? exitStatus.done : exitStatus.failed
}

/** Refusals by code: how many, and the message of the first. */
function reasonsOf(refused: BulkReport['refused']): Map<string, { jobs: number; message: string }> {
  const reasons = new Map<string, { jobs: number; message: string }>()
  for (const { code, message } of refused) {
    const known = reasons.get(code)
    reasons.set(code, { jobs: (known?.jobs ?? 0) + 1, message: known?.message ?? message })
  }
  return reasons
}
