import { StemworkError } from '../errors.js'
import { isWorkflow, type Workflow } from '../workflow/workflow.js'

const workflows = new Map<string, Promise<Workflow>>()

/**
 * Returns the workflow that the module's default export, `(settings) => workflow`, makes. It is made once per process
 * and settings, so a loaded network stays warm between runs.
 *
 * @throws the module's StemworkError, otherwise `INTERNAL_ERROR`
 */
export function workflowFromModule(module: string, settings: unknown): Promise<Workflow> {
  const key = JSON.stringify([module, settings])
  const known = workflows.get(key)
  if (known) return known
  const loading = load(module, settings)
  workflows.set(key, loading)
  loading.catch(() => workflows.delete(key))
  return loading
}

async function load(module: string, settings: unknown): Promise<Workflow> {
  let workflow: unknown
  try {
    const loaded: { default?: unknown } = await import(module)
    if (typeof loaded.default !== 'function')
      throw new TypeError(`${module} has no default export (settings) => workflow`)
    workflow = await loaded.default(settings)
    if (!isWorkflow(workflow))
      throw new TypeError(`the default export of ${module} returned no workflow; use defineWorkflow`)
  } catch (error) {
    if (StemworkError.is(error)) throw error
    const message = 'The workflow could not be loaded by its process. Tell the operator the job id.'
    throw new StemworkError('INTERNAL_ERROR', message, { cause: withRemedy(error) })
  }
  return workflow
}

/** Adds a remedy for TypeScript modules, which the host may run with a loader that its children lack. */
function withRemedy(error: unknown): unknown {
  if ((error as NodeJS.ErrnoException | undefined)?.code !== 'ERR_UNKNOWN_FILE_EXTENSION') return error
  const remedy = "Build the module, or give the children a loader: child: { nodeArguments: ['--import', 'tsx'] }."
  return new Error(remedy, { cause: error })
}
