import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { invalidOptions } from '../../core/engine/errors.js'
import { type Composition, composeWorkflow } from '../../core/engine/workflow/composition.js'
import type { Workflow } from '../../core/engine/workflow/workflow.js'
import type { CommandInput } from '../command.js'
import { packageWorkflows } from './model-options.js'
import { importDefault, readJson, runsTypeScript } from '../input/module-file.js'
import { fileWorkflows } from './workflow-file.js'

const what = 'workflow file'

/**
 * All workflows of a node: those of the package, and those of `--workflows`.
 *
 * @param isRunHere as for `packageWorkflows`
 */
export async function allWorkflows(input: CommandInput, isRunHere: boolean): Promise<Workflow[]> {
  const own = await packageWorkflows(input, isRunHere)
  return [...own, ...(await loadWorkflows(input.list('workflows'), own))]
}

/**
 * Loads the operator's own workflows: each file is an ES module whose default export is a workflow or a list of them,
 * as `defineWorkflow` makes them; or JSON with a composition, or a list of them, of workflows that are known by then.
 * For a folder, loads all such files in it, JSON last.
 *
 * @param known workflows that the steps of a composition may name
 * @throws StemworkError `INVALID_OPTIONS` naming the file.
 */
async function loadWorkflows(paths: readonly string[], known: readonly Workflow[]): Promise<Workflow[]> {
  const loaded: Workflow[] = []
  for (const path of (await Promise.all(paths.map(filesAt))).flat()) {
    if (path.endsWith('.json')) {
      const compositions = [await readJson(what, path)].flat() as Composition[]
      for (const one of compositions) loaded.push(composeWorkflow(one, { workflows: [...known, ...loaded] }))
      continue
    }
    const workflows = fileWorkflows(await importDefault(what, path), pathToFileURL(resolve(path)).href)
    if (!workflows) {
      throw invalidOptions(
        `The default export of ${path} must be a workflow made by defineWorkflow, or a list of them.`,
      )
    }
    loaded.push(...workflows)
  }
  return loaded
}

/** The file, or the workflow files in the folder: not tests, and not those whose names begin with a dot. */
async function filesAt(path: string): Promise<string[]> {
  const names = await readdir(path).catch(() => undefined)
  const kinds = runsTypeScript() ? /^[^.].*\.(m?[jt]s|json)$/ : /^[^.].*\.(m?js|json)$/
  const files = names?.filter((name) => kinds.test(name) && !/\.(test|d)\.\w+$/.test(name)).sort()
  const isLast = (name: string) => Number(name.endsWith('.json'))
  return files ? files.sort((a, b) => isLast(a) - isLast(b)).map((name) => join(path, name)) : [path]
}
