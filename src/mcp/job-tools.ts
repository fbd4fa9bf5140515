import { z } from 'zod'
import { type Client, ClientError } from '../client/client.js'
import type { Connection } from '../client/connection.js'
import { answer, jobAnswer, type Tool, type ToolContext } from './tool.js'

const id = z.string().min(1).describe('Id of the job.')
/** Clients give up on a call after 60 s, unless they are configured otherwise. */
const usualWaitSeconds = 45

/** Tools for uploads and jobs, the same for every service. */
// oxlint-disable-next-line max-lines-per-function -- a table of tools
export function jobTools(client: Client, connection: Connection): Tool[] {
  return [
    tool({
      name: 'upload_link',
      title: 'Get an upload link',
      description:
        'Returns a link to which a local file can be sent once, with an HTTP PUT and the file as its body, for ' +
        'example: curl -T song.mp3 "<uploadUrl>". ' +
        'Afterwards, use downloadUrl as the input of a job.',
      annotations: { readOnlyHint: true },
      input: z.strictObject({}),
      async run(_input, { signal }) {
        const { value } = await connection.json<{ uploadUrl: string; downloadUrl: string }>('/upload', { signal })
        return answer({ ...value })
      },
    }),
    tool({
      name: 'get_job',
      title: 'Look at a job',
      description:
        'Returns the job as it is: status, progress, error, and fresh links to its results once it has SUCCEEDED.',
      annotations: { readOnlyHint: true },
      input: z.strictObject({ id }),
      run: async (input, { signal }) => jobAnswer(await client.getJob(input.id, { signal })),
    }),
    tool({
      name: 'wait_for_job',
      title: 'Wait for a job',
      description:
        'Waits until the job has ended, SUCCEEDED or FAILED, and returns it; at most for the given ' +
        'seconds, after which it can be called again.',
      annotations: { readOnlyHint: true },
      input: z.strictObject({
        id,
        seconds: z.number().positive().max(3600).default(usualWaitSeconds).describe('Longest wait.'),
      }),
      async run(input, { signal, onProgress }) {
        const timeout = AbortSignal.timeout(input.seconds * 1000)
        const reports: Promise<void>[] = []
        try {
          const job = await client.waitForJob(input.id, {
            signal: AbortSignal.any([signal, timeout]),
            onProgress: ({ progress, stage, status }) => void reports.push(onProgress(progress, stage ?? status)),
          })
          await Promise.all(reports)
          return jobAnswer(job)
        } catch (error) {
          if (signal.aborted || !timeout.aborted) throw error
          return jobAnswer(
            await client.getJob(input.id, { signal }),
            'The job has not ended yet. Call wait_for_job again.',
          )
        }
      },
    }),
    tool({
      name: 'list_jobs',
      title: 'List jobs',
      description:
        'Returns a page of the jobs, newest first. With `next` of a page as `cursor`, it returns the page after it.',
      annotations: { readOnlyHint: true },
      input: z.strictObject({
        status: z.enum(['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED']).optional(),
        size: z.number().int().min(1).max(100).default(20),
        cursor: z.string().optional(),
      }),
      async run(input, { signal }) {
        const { jobs, total, next = null } = await client.listJobs(input, { signal })
        const short = jobs.map(({ id, name, status, progress, workflow, createdAt }) => {
          return { id, name, status, progress, workflow: workflow.id, createdAt }
        })
        return answer({ jobs: short, total, next })
      },
    }),
    tool({
      name: 'cancel_job',
      title: 'Cancel a job',
      description: 'Ends a job that has not ended yet; it becomes FAILED with the code CANCELED.',
      annotations: { destructiveHint: true, idempotentHint: true },
      input: z.strictObject({ id }),
      run: async (input, { signal }) => jobAnswer(await client.cancelJob(input.id, { signal })),
    }),
    tool({
      name: 'delete_job',
      title: 'Delete a job',
      description: 'Removes a job in any state, with its uploaded input and its result files.',
      annotations: { destructiveHint: true, idempotentHint: true },
      input: z.strictObject({ id }),
      async run(input, { signal }) {
        await client.deleteJob(input.id, { signal })
        return answer({ id: input.id, deleted: true })
      },
    }),
  ]
}

interface ToolDefinition<Input extends z.ZodType> extends Pick<Tool, 'name' | 'title' | 'description' | 'annotations'> {
  input: Input
  run(input: z.output<Input>, context: ToolContext): ReturnType<Tool['run']>
}

function tool<Input extends z.ZodType>({ input: schema, run, ...facts }: ToolDefinition<Input>): Tool {
  const { $schema: _dialect, ...inputSchema } = z.toJSONSchema(schema, { io: 'input' })
  return {
    ...facts,
    inputSchema: inputSchema as Tool['inputSchema'],
    run(given, context) {
      const checked = schema.safeParse(given)
      if (checked.success) return run(checked.data, context)
      const errors = checked.error.issues.map(({ path, message }) => ({ path: path.join('.') || 'input', message }))
      throw new ClientError('The input of the tool is not valid.', { code: 'BAD_INPUT', status: 400, errors })
    },
  }
}
