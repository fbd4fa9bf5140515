import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFile } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryApplications, memoryJobs } from '../../src/adapters/memory.js'
import { resolvePublicName, resolveWithSystem } from '../../src/core/engine/fetch/resolve-name.js'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { newWebhookSecret } from '../../src/core/engine/webhooks/signature.js'
import { type DurableStores, durableStores } from '../http/durable-stores.js'
import { testEngine, textWorkflow } from '../engine/harness.js'

const memory = async (): Promise<DurableStores> => ({
  jobs: memoryJobs(),
  applications: memoryApplications(),
  async close() {},
})

/** Answers `/quick` at once; begins every other answer and never ends it; the answer of `/trickle` keeps sending. */
let server: Server
let url: string
let hanging: number
const paths: string[] = []

beforeEach(async () => {
  hanging = 0
  paths.length = 0
  server = createServer((request, response) => {
    paths.push(request.url ?? '')
    if (request.url === '/quick') return void response.end('song')
    hanging++
    if (request.method === 'GET') response.writeHead(200).write('s')
    if (request.url !== '/trickle') return
    // Always faster than the minimum rate for a lone input.
    const timer = setInterval(() => response.write('s'.repeat(2000)), 100)
    response.on('close', () => clearInterval(timer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const fetching = defineWorkflow({
  id: 'test/fetching',
  name: 'Fetching',
  description: 'Reads its input.',
  params: z.looseObject({ inputUrl: z.string() }),
  inputs: ['inputUrl'],
  outputs: {},
  stages: [
    {
      name: 'read',
      async run({ inputs }) {
        expect(await readFile(inputs.inputUrl.path, 'utf8')).toBe('song')
      },
    },
  ],
})

const policy = { allow: ['127.0.0.1'] }

for (const [name, open, missing] of [['memory', memory, undefined] as const, ...durableStores]) {
  describe.skipIf(missing !== undefined)(`on ${name}${missing ? ` (${missing})` : ''}`, () => {
    let stores: DurableStores
    beforeEach(async () => void (stores = await open()))
    afterEach(() => stores.close())

    describe('an input that never ends', () => {
      const submit = (engine: ReturnType<typeof testEngine>['engine'], app: string, path: string) =>
        engine.submit({ app, workflow: fetching.id, params: { inputUrl: `${url}${path}` } })

      test('holds up no job of another application, however many of them there are', async () => {
        const { engine, until } = testEngine(
          fetching,
          { fetch: policy, dispatch: { concurrency: 1 }, inputs: { slowInputsPerApplication: 3 } },
          stores,
        )
        await engine.start()
        for (let n = 0; n < 20; n++) await submit(engine, 'slow', '/never')
        await expect.poll(() => hanging, { timeout: 20_000 }).toBe(3)
        for (let n = 0; n < 3; n++) {
          const { job } = await submit(engine, 'quick', '/quick')
          expect((await until(job.id, 'SUCCEEDED')).attempts).toBe(1)
        }
        // The application has only its share: 17 jobs are queued, and none has ended or was claimed again.
        expect(hanging).toBe(3)
        expect(await engine.count({ app: 'slow', statuses: ['STARTED'] })).toBe(3)
        expect(await engine.count({ app: 'slow', statuses: ['QUEUED'] })).toBe(17)
        await engine.close({ timeoutMs: 0 })
        expect(await engine.count({ app: 'slow', statuses: ['QUEUED'] })).toBe(20)
      })

      test('holds up no other application even if many have them, and fails none of their jobs', async () => {
        const { engine, until } = testEngine(
          fetching,
          { fetch: policy, dispatch: { concurrency: 1 }, inputs: { slowInputs: 8, slowInputsPerApplication: 2 } },
          stores,
        )
        await engine.start()
        for (let n = 0; n < 5; n++) for (let app = 0; app < 10; app++) await submit(engine, `slow-${app}`, '/trickle')
        await expect.poll(() => hanging, { timeout: 20_000 }).toBeGreaterThanOrEqual(8)
        for (let n = 0; n < 3; n++) {
          const { job } = await submit(engine, `quick-${n}`, '/quick')
          expect((await until(job.id, 'SUCCEEDED')).attempts).toBe(1)
        }
        expect(await engine.count({ statuses: ['FAILED'] })).toBe(0)
        expect(await engine.count({ statuses: ['STARTED'] })).toBeLessThanOrEqual(9)
        await engine.close({ timeoutMs: 0 })
        expect(await engine.count({ statuses: ['QUEUED'] })).toBe(50)
      })

      test('does not let more jobs run at a time than there are slots, once it has come', async () => {
        let running = 0
        let most = 0
        const stages = defineWorkflow({
          id: 'test/counting',
          name: 'Counting',
          description: 'Counts its runs.',
          params: z.looseObject({ inputUrl: z.string() }),
          inputs: ['inputUrl'],
          outputs: {},
          stages: [
            {
              name: 'run',
              async run() {
                most = Math.max(most, ++running)
                await new Promise((resolve) => setTimeout(resolve, 30))
                running--
              },
            },
          ],
        })
        const { engine, until } = testEngine(stages, { fetch: policy, dispatch: { concurrency: 1 } }, stores)
        const late: (() => void)[] = []
        server.removeAllListeners('request')
        server.on('request', (request, response) => {
          if (request.url === '/quick') response.end('song')
          else late.push(() => response.end('song'))
        })
        await engine.start()
        const ids: string[] = []
        for (const path of ['/late', '/late', '/late']) {
          ids.push((await engine.submit({ app: 'a', workflow: stages.id, params: { inputUrl: url + path } })).job.id)
        }
        await expect.poll(() => late.length, { timeout: 20_000 }).toBe(3)
        for (const end of late) end()
        for (let n = 0; n < 5; n++) {
          ids.push(
            (await engine.submit({ app: 'b', workflow: stages.id, params: { inputUrl: `${url}/quick` } })).job.id,
          )
        }
        for (const id of ids) await until(id, 'SUCCEEDED')
        expect(most).toBe(1)
        await engine.close()
      })
    })

    describe('webhook receivers that never answer', () => {
      test('do not delay messages of other applications, and keep to their share of slots', async () => {
        const secret = newWebhookSecret()
        const { engine } = testEngine(
          textWorkflow(),
          {
            fetch: policy,
            dispatch: { concurrency: 8 },
            webhooks: { secret, timeoutMs: 600_000, concurrency: 10, concurrencyPerApplication: 4 },
          },
          stores,
        )
        await engine.start()
        const submit = (app: string, path: string) =>
          engine.submit({ app, workflow: 'test/text', params: {}, webhook: { url: `${url}${path}` } })
        for (let n = 0; n < 60; n++) await submit('slow', '/never')
        await expect.poll(() => engine.count({ statuses: ['SUCCEEDED'] }), { timeout: 20_000 }).toBe(60)
        await expect.poll(() => hanging, { timeout: 20_000 }).toBe(4)
        for (let n = 0; n < 6; n++) await submit('quick', '/quick')
        await expect.poll(() => paths.filter((path) => path === '/quick').length, { timeout: 20_000 }).toBe(6)
        expect(hanging).toBe(4)
        await engine.close({ timeoutMs: 0 })
      })

      test("whose names no server knows delay neither another application's messages nor its inputs", async () => {
        const nameServer = createSocket('udp4')
        nameServer.bind(0, '127.0.0.1')
        await once(nameServer, 'listening')
        const servers = [`127.0.0.1:${nameServer.address().port}`]
        let stuck = 0
        const resolver = async (host: string, signal: AbortSignal) => {
          if (host === 'localhost') return await resolveWithSystem(host)
          stuck++
          return await resolvePublicName(host, signal, { servers, timeoutMs: 600_000 }).finally(() => stuck--)
        }
        const { engine, until } = testEngine(
          fetching,
          {
            fetch: { allow: ['127.0.0.1', '::1'], resolver },
            dispatch: { concurrency: 4 },
            webhooks: { secret: newWebhookSecret(), timeoutMs: 5_000, concurrencyPerApplication: 4 },
          },
          stores,
        )
        await engine.start()
        const inputUrl = `${url.replace('127.0.0.1', 'localhost')}/quick`
        const submit = (app: string, webhook: string) =>
          engine.submit({ app, workflow: fetching.id, params: { inputUrl }, webhook: { url: webhook } })
        for (let n = 0; n < 40; n++) await submit('slow', `http://dead-${n}.example/hook`)
        await expect.poll(() => stuck, { timeout: 20_000 }).toBe(4)
        for (let n = 0; n < 3; n++) {
          const { job } = await submit('quick', `${url}/hook`)
          expect((await until(job.id, 'SUCCEEDED')).attempts).toBe(1)
        }
        await expect.poll(() => paths.filter((path) => path === '/hook').length, { timeout: 20_000 }).toBe(3)
        await engine.close({ timeoutMs: 0 })
        await expect.poll(() => stuck, { timeout: 20_000 }).toBe(0)
        nameServer.close()
      })
    })
  })
}
