import type { Workflow } from './workflow.js'

/** Whether it has the form of a workflow; it may come from another copy of this package. */
export function isWorkflow(value: unknown): value is Workflow {
  if (typeof value !== 'object' || value === null) return false
  const { id, stages, outputs } = value as Record<string, unknown>
  return typeof id === 'string' && Array.isArray(stages) && typeof outputs === 'function'
}
