import type { Handler } from '../../http/mounts/mountable.js'
import { optional } from './deployment.js'

/** Path of a service's tools for agents. */
export const mcpPath = '/mcp'

/**
 * Adds the Model Context Protocol to a service, at `/mcp`.
 *
 * @param basePath of the service, such as `/v1`
 * @throws StemworkError `MISSING_DEPENDENCY`.
 */
export async function withMcp(service: Handler, basePath: string): Promise<Handler> {
  const { createMcpHandler } = await optional(['@modelcontextprotocol/sdk'], () => import('../../mcp/mcp-handler.js'))
  const agents = createMcpHandler(service, { basePath })
  // The service itself answers requests with an invalid address.
  const isForAgents = ({ url }: Request) => URL.canParse(url) && new URL(url).pathname === mcpPath
  return (request, context) => (isForAgents(request) ? agents : service)(request, context)
}
