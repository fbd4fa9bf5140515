import type { Client } from '../client/client.js'
import { answer, type Tool } from './tool.js'

const nameField = 'jobName'

/**
 * A tool for each workflow: its input is the workflow's params, and a name for the job.
 *
 * @param options.withSchemas whether schemas are listed; calls need none, because the service checks the params
 */
export async function workflowTools(
  client: Client,
  { signal, withSchemas }: { signal: AbortSignal; withSchemas: boolean },
): Promise<Tool[]> {
  const workflows = (await client.workflows({ signal })).filter(({ aliasOf }) => aliasOf === undefined)
  const taken = new Set<string>()
  const paramsOf = async (id: string, ending: AbortSignal) => (await client.workflow(id, { signal: ending })).params
  return await Promise.all(
    workflows.map(async ({ id, name: title, description }): Promise<Tool> => {
      const name = unused(toolName(id), taken)
      const schema = withSchemas ? await paramsOf(id, signal) : {}
      return {
        name,
        title,
        description:
          `${description} Starts a job of the workflow ${id} and returns its id at once; wait_for_job ` +
          'waits for its results.',
        inputSchema: inputSchema(schema),
        annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
        async run(input, { signal: callSignal }) {
          const { [nameField]: jobName, ...rest } = input
          const isParam = jobName !== undefined && nameField in propertiesOf(await paramsOf(id, callSignal))
          // The service refuses a name of another type.
          const named = { params: rest, name: jobName as string | undefined }
          const job = { workflow: id, ...(isParam ? { params: input } : named) }
          const { id: jobId } = await client.createJob(job, { signal: callSignal })
          return answer({ id: jobId, next: `Call wait_for_job with the id ${jobId}.` })
        },
      }
    }),
  )
}

function propertiesOf({ properties }: Record<string, unknown>): object {
  return typeof properties === 'object' && properties !== null ? properties : {}
}

/** A param that has the name of our field takes its place. */
function inputSchema({ $schema: _dialect, ...params }: Record<string, unknown>): Tool['inputSchema'] {
  const properties = propertiesOf(params)
  const jobName = { type: 'string', minLength: 1, maxLength: 255, description: 'What the job is called.' }
  return { ...params, type: 'object', properties: { [nameField]: jobName, ...properties } }
}

/** Some clients accept names of at most 64 letters, digits, `_` and `-`. */
function toolName(id: string): string {
  return `run_${id.replace(/^service\//, '').replace(/[^A-Za-z0-9_-]/g, '_')}`.slice(0, 60)
}

function unused(name: string, taken: Set<string>): string {
  let free = name
  for (let number = 2; taken.has(free); number++) free = `${name}_${number}`
  taken.add(free)
  return free
}
