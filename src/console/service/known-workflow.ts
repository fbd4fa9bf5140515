import type { Workflow } from '../../client/client.js'
import type { Client } from './page-client.js'

const known = new WeakMap<Client, Map<string, Promise<Workflow>>>()

/** A workflow with its params and limits. Requested once: it does not change while the service runs. */
export function knownWorkflow(client: Client, id: string): Promise<Workflow> {
  const answers = known.get(client) ?? new Map<string, Promise<Workflow>>()
  known.set(client, answers)
  const asked = answers.get(id)
  if (asked) return asked
  const answer = client.workflow(id)
  answers.set(id, answer)
  answer.catch(() => answers.delete(id))
  return answer
}
