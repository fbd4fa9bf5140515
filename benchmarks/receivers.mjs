// Whether dead webhook receivers can delay the messages of others: 100 applications with 10 receivers each, of which
// half refuse the connection and half accept it and never answer, cause messages continuously; one application has a
// receiver that answers. Real sockets; each receiver has its own address in 127.0.0.0/8. Measured is how long
// after the end of its job a message arrives. Fails if the p99 is above 1 s. All of it is one process, which needs
// about half a CPU: if other programs use them all, give it priority (Linux, as root: `chrt --rr 2`). Options:
// --seconds=N, --rate=N (jobs a second of all dead applications)
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { createEngine, defineWorkflow } from '../dist/index.js'
import { sqliteStores } from '../dist/adapters/stores/sqlite/index.js'
import { atRate } from './fairness/api.mjs'
import { machine, option } from './shared/benchmark.mjs'

const seconds = Number(option('seconds', '60'))
const rate = Number(option('rate', '100'))
const [applications, receiversEach] = [100, 10]
const healthyRate = 5
const aimMs = 1000

const nothing = defineWorkflow({
  id: 'benchmark/nothing',
  name: 'Nothing',
  description: 'Does nothing.',
  params: z.object({}),
  inputs: [],
  outputs: {},
  stages: [{ name: 'nothing', async run() {} }],
})

const arrivals = []
const healthy = await listening(
  createHttpServer((request, response) => {
    const chunks = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      response.end()
      const { timestamp } = JSON.parse(Buffer.concat(chunks).toString())
      arrivals.push(Date.now() - Date.parse(timestamp))
    })
  }),
)
const sockets = new Set()
const silent = await listening(createServer((socket) => sockets.add(socket.on('error', () => {}))))
const refusing = await listening(createServer())
await new Promise((resolve) => refusing.server.close(resolve))

const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
const stores = sqliteStores({ path: join(folder, 'jobs.db') })
const engine = createEngine({
  jobs: stores.jobs,
  applications: stores.applications,
  workflows: [nothing],
  fetch: { allow: ['127.0.0.0/8'] },
  webhooks: { secret: `whsec_${Buffer.alloc(32, 'x').toString('base64')}` },
  limits: { maxQueuedJobs: 1e6 },
  dispatch: { concurrency: 8 },
  logger: { debug() {}, info() {}, warn() {}, error: (fields, text) => console.error(text, fields) },
})
console.log(
  `${machine()}; Node ${process.version}, SQLite; ` +
    `${applications * receiversEach} dead receivers of ${applications} applications`,
)
await engine.start()
try {
  const alone = await measure('alone', false)
  const beside = await measure('beside dead receivers', true)
  process.exitCode = alone <= aimMs && beside <= aimMs ? 0 : 1
} finally {
  for (const socket of sockets) socket.destroy()
  await engine.close({ timeoutMs: 1000 })
  stores.close()
  await rm(folder, { recursive: true })
  process.exit()
}

async function measure(name, withDead) {
  const stop = new AbortController()
  let next = 0
  const submit = (app, url) => engine.submit({ app, workflow: nothing.id, params: {}, webhook: { url } })
  const storms = withDead
    ? atRate(rate, stop.signal, () => {
        const [app, receiver] = [next % applications, Math.floor(next++ / applications) % receiversEach]
        const { port } = receiver % 2 === 0 ? silent : refusing
        return submit(`dead-${app}`, `http://127.1.${app}.${receiver + 1}:${port}/hook`)
      })
    : Promise.resolve()
  if (withDead) await new Promise((resolve) => setTimeout(resolve, 20_000))
  arrivals.length = 0
  let sent = 0
  const own = atRate(healthyRate, stop.signal, () => {
    sent++
    return submit('healthy', `http://127.0.0.1:${healthy.port}/hook`)
  })
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  stop.abort()
  await Promise.all([storms, own])
  await new Promise((resolve) => setTimeout(resolve, 5000))
  const sorted = [...arrivals].sort((a, b) => a - b)
  const at = (share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN
  const p99 = arrivals.length < sent ? Infinity : at(0.99)
  console.log(
    `${name.padEnd(24)} ${sorted.length} of ${sent} messages: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ` +
      `${sorted.at(-1)} ms (aim: p99 at most ${aimMs} ms)${withDead ? `; ${next} jobs of the dead ones` : ''}`,
  )
  return p99
}

async function listening(server) {
  await new Promise((resolve) => server.listen(0, '0.0.0.0', resolve))
  return { server, port: server.address().port }
}
