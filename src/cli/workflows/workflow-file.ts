import { scriptFile } from '../../core/engine/package-files.js'
import { isWorkflow, type Workflow } from '../../core/engine/workflow/workflow.js'

/** Location for a child process: a workflow of a file, or that of a step of a composition in it. */
interface Place {
  url: string
  id: string
  step?: string
}

/** The workflows that a file exports, set to run in child processes, where they cannot block the service. */
export function fileWorkflows(exported: unknown, url: string): Workflow[] | undefined {
  const workflows = listed(exported)
  return workflows?.map((workflow) => inChild(workflow, { url, id: workflow.id }))
}

/** Module that the child imports; its default export is `workflowAt`. */
const ownAddress = scriptFile('cli/workflows/workflow-file.js').href

function inChild(workflow: Workflow, place: Place): Workflow {
  const { composition, module } = workflow
  if (composition) {
    const steps = composition.steps.map((step) => ({
      ...step,
      workflow: inChild(step.workflow, { ...place, step: step.name }),
    }))
    return { ...workflow, composition: { ...composition, steps } }
  }
  return module ? workflow : { ...workflow, module: { url: ownAddress, settings: place } }
}

/** Returns the workflow at this place, as its file defines it; called in the child process. */
export default async function workflowAt({ url, id, step }: Place): Promise<Workflow | undefined> {
  const { default: exported } = (await import(url)) as { default?: unknown }
  const found = listed(exported)?.find((workflow) => workflow.id === id)
  return step === undefined ? found : found?.composition?.steps.find(({ name }) => name === step)?.workflow
}

function listed(exported: unknown): Workflow[] | undefined {
  const workflows: unknown[] = [exported].flat()
  return workflows.every(isWorkflow) ? workflows : undefined
}
