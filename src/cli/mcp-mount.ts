import type { Handler } from '../http/mounts/mountable.js'
import { optional } from './deployment.js'

/** Where agents find the tools of a service. */
export const mcpPath = '/mcp'

/**
 * The service, with the Model Context Protocol beside it at `/mcp`.
 *
 * @param basePath of the service, such as `/v1`
 * @throws StemworkError `MISSING_DEPENDENCY`.
 */
export async function withMcp(service: Handler, basePath: string): Promise<Handler> {
  const { createMcpHandler } = await optional(['@modelcontextprotocol/sdk'], () => import('../mcp/mcp-handler.js'))
  const agents = createMcpHandler(service, { basePath })
  return (request, context) =>
    new URL(request.url).pathname === mcpPath ? agents(request, context) : service(request, context)
}
