import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StemworkError } from '../core/engine/errors.js'
import { type Composition, composeWorkflow } from '../core/engine/workflow/composition.js'
import type { Workflow } from '../core/engine/workflow/workflow.js'
import type { CommandInput } from './command.js'
import { packageWorkflows } from './model-options.js'

/**
 * All workflows of a node: those of the package, and those of `--workflows`.
 *
 * @param isRunHere as for `packageWorkflows`
 */
export async function allWorkflows(input: CommandInput, isRunHere: boolean): Promise<Workflow[]> {
  const own = await packageWorkflows(input, isRunHere)
  return [...own, ...(await loadWorkflows((input.values.workflows as string[] | undefined) ?? [], own))]
}

/**
 * Workflows of the operator's own: each file is an ES module whose default export is a workflow or a list of them, as
 * `defineWorkflow` makes them; or JSON with a composition, or a list of them, of the workflows that are known by then.
 *
 * @param known what the steps of a composition may name
 * @throws StemworkError `INVALID_OPTIONS` naming the file.
 */
async function loadWorkflows(paths: readonly string[], known: readonly Workflow[]): Promise<Workflow[]> {
  const loaded: Workflow[] = []
  for (const path of paths) {
    if (path.endsWith('.json')) {
      const compositions = [await readJson(path)].flat() as Composition[]
      for (const one of compositions) loaded.push(composeWorkflow(one, { workflows: [...known, ...loaded] }))
      continue
    }
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

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    throw new StemworkError('INVALID_OPTIONS', `The workflow file ${path} could not be read as JSON.`, { cause: error })
  }
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
