import type { JobRecord } from '../../core/engine/job/job.js'
import type { KeyedCall } from '../routing/call.js'

/** How much of each result of a job that runs here can be read, and where, by output name. */
export async function growingResults(
  call: KeyedCall,
  job: JobRecord,
): Promise<Record<string, { bytes: number; url: string }>> {
  const { engine } = call.service
  const workflow = job.status === 'STARTED' && engine.isRunningHere(job.id) && engine.workflows.get(job.workflow)
  if (!workflow) return {}
  const found: Record<string, { bytes: number; url: string }> = {}
  for (const name of Object.keys(workflow.outputs(workflow.params.parse(job.params) as Record<string, unknown>))) {
    const result = await engine.growingResult(job, name)
    if (!result) continue
    await result.close()
    const url = `${call.baseUrl}/job/${job.id}/growing/${encodeURIComponent(name)}`
    if (result.bytes > 0) found[name] = { bytes: result.bytes, url }
  }
  return found
}
