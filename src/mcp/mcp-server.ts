import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js'
import { createClient } from '../client/client.js'
import { ClientError } from '../client/client-error.js'
import { type ClientOptions, Connection } from '../client/connection.js'
import { packageVersion } from '../core/engine/package-files.js'
import { jobTools } from './job-tools.js'
import type { Tool, ToolContext } from './tool.js'
import { workflowTools } from './workflow-tools.js'

const instructions =
  'Runs media-processing jobs. Files go in and out by links, never through this conversation: give a public URL as ' +
  'the input, or get an upload link with ' +
  'upload_link, send the file there with an HTTP PUT, and use its downloadUrl. A tool named run_... starts a job ' +
  'and returns its id; wait_for_job waits for it; ' +
  'the result links can be downloaded without a key until they expire. Delete a job once its results are saved.'

/**
 * A server of the Model Context Protocol over the interface of a service: a tool for each of its workflows, made from
 * their schemas, and tools for uploads and jobs. It can do what the key can, and sees what the key sees. Connect it to
 * any transport of `@modelcontextprotocol/sdk`.
 *
 * @example
 * const server = createMcpServer({ baseUrl: 'https://stems.example.org/v1', apiKey })
 * await server.connect(new StdioServerTransport())
 */
export function createMcpServer(options: ClientOptions): Server {
  const client = createClient(options)
  const connection = new Connection(options)
  const server = new Server(
    { name: 'stemwork', version: packageVersion() },
    { capabilities: { tools: {} }, instructions },
  )
  const fixed = jobTools(client, connection)

  server.setRequestHandler(ListToolsRequestSchema, async (_request, { signal }) => {
    const tools = [...(await inWords(() => workflowTools(client, { signal, withSchemas: true }))), ...fixed]
    return {
      tools: tools.map(({ name, title, description, inputSchema, annotations }) => ({
        name,
        title,
        description,
        inputSchema,
        annotations,
      })),
    }
  })

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra): Promise<CallToolResult> => {
    const { signal } = extra
    const token = params._meta?.progressToken
    let shown = -1
    const context: ToolContext = {
      signal,
      async onProgress(progress, message) {
        // A retried job starts again from 0, but the protocol requires rising numbers.
        if (token === undefined || progress <= shown) return
        shown = progress
        const params = { progressToken: token, progress, total: 1, message }
        // The client may be gone, which does the call no harm.
        await extra.sendNotification({ method: 'notifications/progress', params }).catch(() => {})
      },
    }
    try {
      const tool = await toolNamed(params.name, signal)
      return await tool.run(params.arguments ?? {}, context)
    } catch (error) {
      signal.throwIfAborted()
      if (!ClientError.is(error)) throw error
      return { isError: true, content: [{ type: 'text', text: errorText(error) }] }
    }
  })
  return server

  async function toolNamed(name: string, signal: AbortSignal): Promise<Tool> {
    const known = fixed.find((tool) => tool.name === name)
    if (known) return known
    const ofWorkflows = await workflowTools(client, { signal, withSchemas: false })
    const tool = ofWorkflows.find((one) => one.name === name)
    if (tool) return tool
    const names = [...ofWorkflows, ...fixed].map((one) => one.name).join(', ')
    throw new McpError(ErrorCode.InvalidParams, `There is no tool "${name}". There are: ${names}.`)
  }
}

/** Reports failures as protocol errors: a list of tools has no result that could report them. */
async function inWords<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    throw ClientError.is(error) ? new McpError(ErrorCode.InternalError, errorText(error)) : error
  }
}

function errorText({ code, message, errors }: ClientError): string {
  const fields = errors.map(({ path, message: problem }) => `\n${path}: ${problem}`).join('')
  return `${message} (${code})${fields}`
}
