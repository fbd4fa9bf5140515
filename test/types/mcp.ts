import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { Handler } from 'stemwork/http'
import { createMcpHandler, createMcpServer } from 'stemwork/mcp'
import { expectType } from './expect-type.js'

declare const handler: Handler
expectType<Handler>()(createMcpHandler(handler, { mountPath: '/v1', origins: ['https://agents.example.org'] }))
expectType<Server>()(createMcpServer({ baseUrl: 'https://stems.example.org/v1', apiKey: 'key' }))

// @ts-expect-error: the address of the service is needed
createMcpServer({ apiKey: 'key' })
