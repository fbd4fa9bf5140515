import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StemworkError } from '../core/engine/errors.js'
import type { Workflow } from '../core/engine/workflow/workflow.js'

/**
 * Workflows of the operator's own: each file is an ES module whose default export is a workflow or a list of them, as
 * `defineWorkflow` makes them.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the file.
 */
export async function loadWorkflows(paths: readonly string[]): Promise<Workflow[]> {
  const loaded: Workflow[] = []
  for (const path of paths) {
    const exported: unknown = await importDefault(path)
    const workflows = Array.isArray(exported) ? exported : [exported]
    if (!workflows.every(isWorkflow)) {
      throw new StemworkError(
        'INVALID_OPTIONS',
        `The default export of ${path} must be a workflow made by defineWorkflow, or a list of them.`,
      )
    }
    loaded.push(...workflows)
  }
  return loaded
}

async function importDefault(path: string): Promise<unknown> {
  try {
    const module = (await import(pathToFileURL(resolve(path)).href)) as { default?: unknown }
    return module.default
  } catch (error) {
    throw new StemworkError(
      'INVALID_OPTIONS',
      `The workflow file ${path} could not be loaded. It must be an ES module that Node can import.`,
      { cause: error },
    )
  }
}

function isWorkflow(value: unknown): value is Workflow {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    'stages' in value &&
    'outputs' in value &&
    typeof value.outputs === 'function'
  )
}
