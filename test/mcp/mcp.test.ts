import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createConnection } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { type RunningServer, serve } from '../../src/http/mounts/node.js'
import { withMcp } from '../../src/cli/service/mcp-mount.js'
import { createMcpHandler, createMcpServer } from '../../src/mcp/index.js'
import { startService as startCommand } from '../cli/stemwork.js'
import { type JobJson, type Service, serviceOfTest, startService } from '../http/harness.js'
import { rawRequest } from '../http/mounts/raw-request.js'

let service: Service
let mcp: RunningServer
let clients: Client[] = []
beforeEach(async () => {
  service = await startService()
  const handler = createMcpHandler(service.handler, { basePath: '/v1', origins: ['https://agents.example.org'] })
  mcp = await serve(
    (request, context) => (isMcp(request) ? handler(request, context) : service.handler(request, context)),
    {
      port: 0,
    },
  )
})
afterEach(async () => {
  for (const client of clients) await client.close()
  clients = []
  await mcp.close({ timeoutMs: 100 })
  await service.close()
})

/** The members used of the package `ws`, which has no types. */
const library = 'ws'
const { WebSocket } = (await import(library)) as {
  WebSocket: new (
    address: string,
    options: { headers: Record<string, string> },
  ) => NodeJS.EventEmitter & { send(message: Uint8Array): void }
}

const isMcp = ({ url }: Request) => new URL(url).pathname === '/mcp'
const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

const overHttp = (key: string) =>
  new StreamableHTTPClientTransport(new URL(`${mcp.origin}/mcp`), { requestInit: { headers: { authorization: key } } })
const overStdio = (key: string) =>
  new StdioClientTransport({
    command: process.execPath,
    args: [main, 'mcp'],
    env: { ...(process.env as Record<string, string>), STEMWORK_URL: service.base, STEMWORK_API_KEY: key },
  })

async function connected(transport: Transport): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  clients.push(client)
  await client.connect(transport)
  return client
}

async function call(
  client: Client,
  name: string,
  input: Record<string, unknown> = {},
  onprogress?: (progress: number) => void,
) {
  const result = (await client.callTool(
    { name, arguments: input },
    undefined,
    onprogress && { onprogress: ({ progress }) => onprogress(progress) },
  )) as CallToolResult
  const [text] = result.content
  return {
    isError: result.isError === true,
    text: text?.type === 'text' ? text.text : '',
    value: result.structuredContent as Record<string, unknown> & JobJson,
    links: result.content.filter((item) => item.type === 'resource_link'),
  }
}

describe.each([
  ['over HTTP', overHttp],
  ['on standard input and output', overStdio],
])('an agent %s', (_name, transport) => {
  it('uploads, runs a workflow, waits with progress, reads results by links, and deletes', async () => {
    const client = await connected(transport(service.app.key))
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual([
      'run_stems-vocals-accompaniment',
      'run_held',
      'upload_link',
      'get_job',
      'wait_for_job',
      'list_jobs',
      'cancel_job',
      'delete_job',
    ])
    expect(tools[0]).toMatchObject({
      title: 'Vocals and accompaniment',
      inputSchema: {
        type: 'object',
        required: ['inputUrl'],
        properties: { inputUrl: { type: 'string', format: 'uri' }, jobName: { type: 'string' } },
      },
    })

    const upload = (await call(client, 'upload_link')).value as unknown as { uploadUrl: string; downloadUrl: string }
    const song = Buffer.from('RIFF and so on')
    expect((await fetch(upload.uploadUrl, { method: 'PUT', body: song })).status).toBe(200)
    const started = await call(client, 'run_stems-vocals-accompaniment', {
      inputUrl: upload.downloadUrl,
      jobName: 'Song',
    })
    const { id } = started.value
    const ended = await call(client, 'wait_for_job', { id })
    expect(ended.value).toMatchObject({ id, name: 'Song', status: 'SUCCEEDED' })
    expect(ended.links).toMatchObject([
      { name: 'Song - vocals.wav', mimeType: 'audio/wav', uri: ended.value.result!.vocals },
      { name: 'Song - accompaniments.wav', mimeType: 'audio/wav' },
    ])
    expect(Buffer.from(await (await fetch(ended.value.result!.vocals!)).arrayBuffer())).toEqual(song)

    const held = (await call(client, 'run_held', { note: 'x' })).value.id
    const progress: number[] = []
    const waiting = call(client, 'wait_for_job', { id: held }, (now) => {
      progress.push(now)
      if (now > 0) service.release()
    })
    expect((await waiting).value.status).toBe('SUCCEEDED')
    expect(progress.some((now) => now > 0 && now < 1)).toBe(true)
    expect(progress).toEqual([...new Set(progress)].sort((a, b) => a - b))

    const listed = (await call(client, 'list_jobs', { status: 'SUCCEEDED', size: 1 })).value
    expect(listed).toMatchObject({ total: 2, jobs: [{ id: held, workflow: 'service/held' }] })
    expect((await call(client, 'delete_job', { id })).value).toEqual({ id, deleted: true })
    expect(await call(client, 'get_job', { id })).toMatchObject({
      isError: true,
      text: expect.stringContaining('NOT_FOUND'),
    })
  })

  it('sees nothing of another application', async () => {
    const other = await service.addApplication('Other')
    const [mine, theirs] = [await connected(transport(service.app.key)), await connected(transport(other.key))]
    const { id } = (await call(mine, 'run_held')).value
    for (const tool of ['get_job', 'wait_for_job', 'cancel_job', 'delete_job'])
      expect(await call(theirs, tool, { id })).toMatchObject({
        isError: true,
        text: expect.stringContaining('NOT_FOUND'),
      })
    expect((await call(theirs, 'list_jobs')).value).toMatchObject({ jobs: [], total: 0 })
    expect((await call(mine, 'get_job', { id })).value.status).not.toBe('FAILED')
    expect((await call(mine, 'cancel_job', { id })).isError).toBe(false)
  })

  it('is told in words what is wrong', async () => {
    const client = await connected(transport(service.app.key))
    const refused = await call(client, 'run_stems-vocals-accompaniment', { inputUrl: 'song.mp3' })
    expect(refused).toMatchObject({ isError: true, text: expect.stringMatching(/params\.inputUrl: .*URL/) })
    const named = await call(client, 'run_held', { jobName: 5 })
    expect(named).toMatchObject({ isError: true, text: expect.stringMatching(/\nname: must be a text/) })
    expect(await call(client, 'get_job', { job: 1 })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/not valid\. \(BAD_INPUT\)\nid: /),
    })
    await expect(client.callTool({ name: 'run_nothing' })).rejects.toThrow(
      /There are: run_stems-vocals-accompaniment, /,
    )
    const { id } = (await call(client, 'run_held')).value
    const waited = await call(client, 'wait_for_job', { id, seconds: 0.05 })
    expect(waited.value).toMatchObject({ id, note: 'The job has not ended yet. Call wait_for_job again.' })
  })
})

it('a param that is called jobName reaches its workflow', async () => {
  const named = defineWorkflow({
    id: 'service/named',
    name: 'Named',
    description: 'Has a param whose name the tools use for something else.',
    params: z.object({ jobName: z.enum(['a', 'b']) }),
    inputs: [],
    outputs: { report: { fileName: 'report.json', contentType: 'application/json' } },
    stages: [{ name: 'nothing', run: () => Promise.resolve() }],
  })
  const other = await serviceOfTest({ workflows: [named], worker: false })
  const handler = createMcpHandler(other.handler, { basePath: '/v1' })
  const beside = await serve(handler, { port: 0 })
  onTestFinished(() => beside.close({ timeoutMs: 100 }))
  const requestInit = { headers: { authorization: other.app.key } }
  const client = await connected(new StreamableHTTPClientTransport(new URL(beside.origin), { requestInit }))
  const { tools } = await client.listTools()
  const tool = tools.find(({ name }) => name === 'run_named')
  expect(tool?.inputSchema.properties).toEqual({ jobName: expect.objectContaining({ enum: ['a', 'b'] }) })
  const { id } = (await call(client, 'run_named', { jobName: 'b' })).value
  expect(await other.engine.get(id)).toMatchObject({ params: { jobName: 'b' }, name: null })
})

describe('the protocol over HTTP', () => {
  it('requires the key of an application before anything else', async () => {
    await expect(connected(overHttp('stw_wrong'))).rejects.toThrow(/401|UNAUTHORIZED|API key/)
    const answer = await fetch(`${mcp.origin}/mcp`, { method: 'POST', body: '{}' })
    expect(answer.status).toBe(401)
    expect(answer.headers.get('www-authenticate')).toContain('Bearer')
    expect((await fetch(`${mcp.origin}/mcp`)).status).toBe(405)
  })

  it('refuses web pages that are not allowed', async () => {
    const post = (origin: string) =>
      fetch(`${mcp.origin}/mcp`, {
        method: 'POST',
        headers: {
          origin,
          authorization: service.app.key,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      })
    expect((await post('https://evil.example')).status).toBe(403)
    const allowed = await post('https://agents.example.org')
    expect([allowed.status, await allowed.text()]).toEqual([200, expect.stringContaining('wait_for_job')])
  })
})

describe('on standard input and output', () => {
  it('a wrong key is reported with the first list of tools', async () => {
    const client = await connected(overStdio('0123456789abcdef-wrong'))
    await expect(client.listTools()).rejects.toThrow(/API key is not valid.*UNAUTHORIZED/)
  })

  it('requests are answered even if the input ends right after them', async () => {
    const child = spawn(process.execPath, [main, 'mcp', '--url', service.base], {
      env: { ...process.env, STEMWORK_API_KEY: service.app.key },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    const requests = [
      { id: 1, method: 'initialize', params: hello },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/list' },
      { id: 3, method: 'tools/call', params: { name: 'list_jobs', arguments: {} } },
    ]
    child.stdin.end(requests.map((each) => `${JSON.stringify({ jsonrpc: '2.0', ...each })}\n`).join(''))
    const answers = (await text(child.stdout)).trim().split('\n')
    const known = answers.map((line) => JSON.parse(line) as { id: number; result?: unknown })
    expect(known.flatMap(({ id, result }) => (result === undefined ? [] : id)).sort((a, b) => a - b)).toEqual([1, 2, 3])
  })
})

describe('stemwork serve --mcp', () => {
  it('serves it beside the service', async () => {
    const key = 'a-key-of-an-application'
    const running = await startCommand(['--mcp', '--api-keys', key])
    try {
      const address = new URL('/mcp', running.baseUrl)
      const transport = new StreamableHTTPClientTransport(address, { requestInit: { headers: { authorization: key } } })
      const client = await connected(transport)
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('wait_for_job')
      const health = await fetch(new URL('/healthz', running.baseUrl))
      expect(health.status).toBe(200)
    } finally {
      running.process.kill('SIGKILL')
      await running.process.finished()
    }
  })

  it('works together with live streams, which a stop ends', async () => {
    const key = 'a-key-of-an-application'
    const { baseUrl, process } = await startCommand(['--mcp', '--live', '1', '--api-keys', key])
    try {
      const address = `${baseUrl.replace('http:', 'ws:')}/live?sampleRate=44100&latencyMs=250`
      const stream = new WebSocket(address, { headers: { authorization: key } })
      await once(stream, 'open')
      stream.send(new Uint8Array(1000))
      const client = await connected(
        new StreamableHTTPClientTransport(new URL('/mcp', baseUrl), {
          requestInit: { headers: { authorization: key } },
        }),
      )
      expect((await client.listTools()).tools.length).toBeGreaterThan(0)
      await client.close()
      const closed = once(stream, 'close')
      process.kill('SIGTERM')
      expect((await process.finished()).status).toBe(0)
      await closed
    } finally {
      process.kill('SIGKILL')
    }
  })
})

describe('over HTTP, a request', () => {
  const ask = (messages: unknown, to = mcp, key = service.app.key) =>
    fetch(`${to.origin}/mcp`, {
      method: 'POST',
      body: JSON.stringify(messages),
      headers: {
        authorization: key,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
    })
  const ping = (params = {}) => ({ jsonrpc: '2.0', id: 1, method: 'ping', params })
  const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`m${n}`, n]))

  it('may be a message of hundreds of members, not of thousands', async () => {
    expect((await ask(ping(members(900)))).status).toBe(200)
    const refused = await ask(ping(members(2000)))
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ code: 'BAD_INPUT', message: expect.stringMatching(/members/) })
  })

  it('counts as many requests as it has messages', async () => {
    const few = await startService({ http: { rateLimits: { other: { requests: 10, perSeconds: 3600 } } } })
    const handler = createMcpHandler(few.handler, { basePath: '/v1' })
    const server = await serve(handler, { port: 0 })
    const batch = Array.from({ length: 5 }, (_, id) => ({ ...ping(), id }))
    const statuses: number[] = []
    // One after another: concurrent requests share the rest of the rate, so that all of them may be refused.
    for (let n = 0; n < 3; n++) statuses.push((await ask(batch, server, few.app.key)).status)
    expect(statuses).toEqual([200, 200, 429])
    await Promise.all([server.close({ timeoutMs: 100 }), few.close()])
  })

  it('may not share its id with another: only one of the answers could be sent', async () => {
    const [ended, running] = [await service.created(), await service.created()]
    await service.engine.cancel(ended)
    const wait = (id: string) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'wait_for_job', arguments: { id }, _meta: { progressToken: id } },
    })
    const answer = await ask([wait(running), wait(ended)])
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('have the id 1')])
    // The same id as a number and as a string counts as two.
    expect((await ask([ping(), { ...ping(), id: '1' }])).status).toBe(200)
  })

  it('is handled in turn: one message in a pass of the event loop', async () => {
    const passes: number[] = []
    let pass = 0
    const counted = () => {
      pass++
      next = setImmediate(counted)
    }
    let next = setImmediate(counted)
    const protocol = Object.getPrototypeOf(Server.prototype) as { _onrequest(...given: unknown[]): void }
    const handle = protocol._onrequest
    vi.spyOn(protocol, '_onrequest').mockImplementation(function (this: typeof protocol, ...given) {
      passes[pass] = (passes[pass] ?? 0) + 1
      handle.apply(this, given)
    })
    onTestFinished(() => void vi.restoreAllMocks())
    const body = JSON.stringify(ping())
    const head =
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${service.app.key}\r\n` +
      'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n' +
      `Content-Length: ${body.length}\r\n\r\n`
    const clients = Array.from({ length: 50 }, () => createConnection(mcp.port, '127.0.0.1'))
    for (const client of clients) client.write(head + body.slice(0, -1))
    await delay(500)
    const answers = clients.map((client) => once(client, 'data'))
    // The last byte of all requests is sent at once.
    for (const client of clients) client.write(body.slice(-1))
    await Promise.all(answers)
    for (const client of clients) client.destroy()
    clearImmediate(next)
    const handled = passes.filter(Boolean)
    expect(handled.reduce((sum, count) => sum + count, 0)).toBe(50)
    // The two requests may be on either side of the count.
    expect(Math.max(...handled)).toBeLessThanOrEqual(2)
  })
})

it('progress that cannot be sent harms neither the call nor the process', async () => {
  const [near, far] = InMemoryTransport.createLinkedPair()
  const send = far.send.bind(far)
  far.send = async (message, options) => {
    if ('method' in message && message.method === 'notifications/progress') throw new Error('no connection')
    await send(message, options)
  }
  await createMcpServer({ baseUrl: service.base, apiKey: service.app.key }).connect(far)
  const client = await connected(near)
  const id = await service.created()
  service.release()
  const { value } = await call(client, 'wait_for_job', { id }, () => {})
  expect(value).toMatchObject({ id, status: 'SUCCEEDED' })
})

it('leaves it to the service to refuse an invalid address', async () => {
  const both = await serve(await withMcp(service.handler, '/v1'), { port: 0 })
  const head = 'GET /v1/docs HTTP/1.1\r\nHost: xn--a\r\nConnection: close\r\n\r\n'
  const { status } = await rawRequest(both.origin, [head])
  await both.close({ timeoutMs: 100 })
  expect(status).toBe(400)
})
