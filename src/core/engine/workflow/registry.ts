import { invalidOptions, StemworkError } from '../errors.js'
import { type Workflow, workflowIdSchema } from './workflow.js'

/** The workflows an engine offers, by id. */
export class WorkflowRegistry<Offered extends Workflow = Workflow> {
  readonly #workflows = new Map<string, Offered>()
  /** Further ids. */
  readonly #aliases = new Map<string, Offered>()

  /** @param aliases further ids, each with the id of its workflow */
  constructor(workflows: readonly Offered[], aliases: Readonly<Record<string, string>> = {}) {
    for (const workflow of workflows) {
      if (this.#workflows.has(workflow.id)) {
        throw invalidOptions(`Two workflows have the id "${workflow.id}"; ids must be unique.`)
      }
      this.#workflows.set(workflow.id, workflow)
    }
    for (const [alias, id] of Object.entries(aliases)) this.#addAlias(alias, id)
  }

  /** Finds a workflow by its id or an alias. */
  get(id: string): Offered | undefined {
    return this.#workflows.get(id) ?? this.#aliases.get(id)
  }

  /** Resolves an alias to its workflow's id; returns any other id unchanged. */
  idOf(idOrAlias: string): string {
    return this.#aliases.get(idOrAlias)?.id ?? idOrAlias
  }

  /** @throws StemworkError `UNKNOWN_WORKFLOW` naming the known ones. */
  require(id: string): Offered {
    const workflow = this.get(id)
    if (workflow) return workflow
    const known = this.offers().map((offer) => offer.id)
    const message = `There is no workflow "${id}". Known workflows: ${known.join(', ') || 'none'}.`
    throw new StemworkError('UNKNOWN_WORKFLOW', message, { details: { known } })
  }

  list(): Offered[] {
    return [...this.#workflows.values()]
  }

  /** Every id that a job may name, with its workflow: first the workflows' ids, then the aliases. */
  offers(): { id: string; workflow: Offered }[] {
    return [...this.#workflows, ...this.#aliases].map(([id, workflow]) => ({ id, workflow }))
  }

  #addAlias(alias: string, id: string): void {
    const workflow = this.#workflows.get(id)
    const problem = this.#workflows.has(alias)
      ? 'there is a workflow with this id'
      : workflow
        ? workflowIdSchema.safeParse(alias).error?.issues[0]?.message
        : `there is no workflow "${id}"; known workflows: ${[...this.#workflows.keys()].join(', ') || 'none'}`
    if (problem !== undefined || !workflow)
      throw invalidOptions(`The alias ${JSON.stringify(alias)} cannot be used: ${problem}.`)
    this.#aliases.set(alias, workflow)
  }
}
