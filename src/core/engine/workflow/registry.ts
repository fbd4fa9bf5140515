import { StemworkError } from '../errors.js'
import type { Workflow } from './workflow.js'

/** The workflows an engine offers, by id. */
export class WorkflowRegistry<Offered extends Workflow = Workflow> {
  readonly #workflows = new Map<string, Offered>()

  constructor(workflows: readonly Offered[]) {
    for (const workflow of workflows) {
      if (this.#workflows.has(workflow.id)) {
        throw new StemworkError('INVALID_OPTIONS', `Two workflows have the id "${workflow.id}"; ids must be unique.`)
      }
      this.#workflows.set(workflow.id, workflow)
    }
  }

  get(id: string): Offered | undefined {
    return this.#workflows.get(id)
  }

  /** @throws StemworkError `UNKNOWN_WORKFLOW` naming the known ones. */
  require(id: string): Offered {
    const workflow = this.#workflows.get(id)
    if (workflow) return workflow
    const known = [...this.#workflows.keys()]
    throw new StemworkError(
      'UNKNOWN_WORKFLOW',
      `There is no workflow "${id}". Known workflows: ${known.join(', ') || 'none'}.`,
      {
        details: { known },
      },
    )
  }

  list(): Offered[] {
    return [...this.#workflows.values()]
  }
}
