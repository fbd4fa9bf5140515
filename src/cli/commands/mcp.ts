import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { type Command, exitStatus, UsageError, valued } from '../command.js'
import { optional } from '../service/deployment.js'
import { withEnvironment } from '../input/environment.js'
import { onInterruption } from '../terminal/interruption.js'

export const command: Command = {
  usage: 'mcp --url <base url> [options]',
  description:
    'Connects agents to a service through the Model Context Protocol on standard input and output, with tools to ' +
    'upload files, run workflows, wait, read and delete.',
  options: withEnvironment({
    url: valued('url', 'Base address of the service, for example http://127.0.0.1:8080/v1.'),
    'api-key': valued(
      'key',
      'The key of the application whose jobs are used. Prefer STEMWORK_API_KEY, which does not appear in ' +
        'process lists.',
    ),
  }),
  notes:
    'It needs the package @modelcontextprotocol/sdk (npm install @modelcontextprotocol/sdk). Files are transferred ' +
    'by links, never through the conversation.\n' +
    'In the settings of an agent: { "command": "npx", "args": ["stemwork", "mcp"], "env": { "STEMWORK_URL": "...", ' +
    '"STEMWORK_API_KEY": "..." } }',
  async run(input) {
    const baseUrl = input.text('url')
    if (baseUrl === undefined || !/^https?:\/\/./.test(baseUrl))
      throw new UsageError(
        '--url, or STEMWORK_URL, must be the base address of a service, for example http://127.0.0.1:8080/v1, not ' +
          `${JSON.stringify(baseUrl ?? '')}.`,
      )
    const [{ createMcpServer }, { StdioServerTransport }] = await optional(['@modelcontextprotocol/sdk'], () =>
      Promise.all([import('../../mcp/mcp-server.js'), import('@modelcontextprotocol/sdk/server/stdio.js')]),
    )
    const server = createMcpServer({ baseUrl, apiKey: input.text('api-key') })
    const interruption = onInterruption((status) => process.exit(status))
    // The agent ends the server by closing its standard input.
    const ended = new Promise<void>((resolve) => process.stdin.once('end', resolve).once('close', resolve))
    const transport = new StdioServerTransport()
    await server.connect(transport)
    const answered = allAnswered(transport)
    await Promise.race([ended.then(() => answered()), interruption.stopped()])
    await server.close()
    interruption.release()
    return interruption.status() ?? exitStatus.done
  },
}

/** Time for the last requests, which the agent may send just before it closes the input; some take an hour. */
const longestAnswerMs = 10_000

/** Returns a function that waits until all received requests are answered, or have taken too long. */
function allAnswered(transport: Transport): () => Promise<void> {
  const pending = new Set<unknown>()
  const { onmessage } = transport
  const send = transport.send.bind(transport)
  let wake = () => {}
  transport.onmessage = (message, extra) => {
    if ('method' in message && 'id' in message) pending.add(message.id)
    onmessage?.(message, extra)
  }
  transport.send = async (message, options) => {
    await send(message, options)
    if (!('method' in message)) pending.delete(message.id)
    if (pending.size === 0) wake()
  }
  return () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, longestAnswerMs)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
      if (pending.size === 0) wake()
    })
}
