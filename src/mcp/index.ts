export { createMcpHandler, type McpHandlerOptions } from './mcp-handler.js'
export { createMcpServer } from './mcp-server.js'
