// The cost of the HTTP side: requests a second and CPU time of GET /job/:id/status through
// `serve(createHandler(engine))`, against a bare node:http handler that sends the same bytes from memory (it reads no
// header, knows no job and checks nothing), and one that serializes the JSON each time; and the memory that a 1 GiB
// upload and download take. Each server is a process of its own and gets its requests from this one; they take turns,
// so that other load slows all of them. Options: --processes=N (how often the servers are restarted: memory layout
// makes some processes slower than others), --rounds=N (of each), --requests=N (in a round), --mebibytes=N (of the
// file).
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { machine, middle, option, printRows } from './shared/benchmark.mjs'

const connections = 32
const closingBrace = '}'.charCodeAt(0)
const mebibyte = 1024 * 1024
const processes = option('processes', 3)
const rounds = option('rounds', 7)
const requests = option('requests', 8000)
const mebibytes = option('mebibytes', 1024)

if (process.send) await beServer(process.argv[2], process.argv[3])
else await measure()

async function measure() {
  await printMachine()
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
  try {
    await compareStatus(folder)
    await transferFile(folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function compareStatus(folder) {
  const samples = []
  for (let count = 0; count < processes; count++) samples.push(...(await takeTurns(folder)))

  const of = (side, figure) => middle(samples.map((sample) => sample[side][figure]))
  const perSecond = (side) =>
    `${Math.round(of(side, 'perSecond'))} requests/s, ${of(side, 'cpuUs').toFixed(0)} us of processor time each`
  printRows([
    ['GET /job/:id/status', perSecond('service')],
    ['bare node:http, same answer', perSecond('bare')],
    ['the same, writing its JSON', perSecond('writing')],
    [
      'ratio of the medians',
      `${(of('service', 'perSecond') / of('bare', 'perSecond')).toFixed(2)} (aim: at least 0.70)`,
    ],
    ['ratio to the server that writes', (of('service', 'perSecond') / of('writing', 'perSecond')).toFixed(2)],
    [
      'ratio in processor time',
      `${(of('bare', 'cpuUs') / of('service', 'cpuUs')).toFixed(2)} (bare / service; aim: at least 0.60)`,
    ],
    [
      'ratio, each round',
      samples
        .map(({ service, bare }) => (service.perSecond / bare.perSecond).toFixed(2))
        .sort()
        .join(' '),
    ],
  ])
}

/** Measures new servers, which take turns. */
async function takeTurns(folder) {
  const service = await startServer('service', folder)
  const { key, id } = await service.ask({ kind: 'job' })
  const head = `GET /v1/job/${id}/status HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${key}\r\n\r\n`
  const sample = await fetch(`http://127.0.0.1:${service.port}/v1/job/${id}/status`, {
    headers: { authorization: key },
  })
  if (sample.status !== 200) throw new Error(`GET /job/:id/status answered ${sample.status}.`)
  const body = await sample.text()
  const bare = await startServer('bare', folder)
  // node:http sets these itself.
  const headers = Object.fromEntries(
    [...sample.headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name)),
  )
  await bare.ask({ kind: 'answer', headers, body })
  const writing = await startServer('bare', folder)
  await writing.ask({ kind: 'answer', headers, value: JSON.parse(body) })

  const samples = []
  // The first rounds warm up compilers.
  for (let round = -3; round < rounds; round++) {
    const sides = Object.entries({ service, bare, writing })
    const sample = {}
    for (const [name, side] of round % 2 ? sides : sides.reverse()) sample[name] = await load(side, head)
    if (round >= 0) samples.push(sample)
  }
  for (const side of [service, bare, writing]) side.stop()
  return samples
}

/**
 * Sends `requests` over connections that each wait for a response before the next request. The client never sleeps
 * meanwhile: waking it would be work for the server that writes to it, so a server that leaves its client time to sleep
 * would be charged for the wake-ups.
 */
async function load(server, head) {
  const before = await server.ask({ kind: 'usage' })
  const startedAt = performance.now()
  let left = requests
  let isAsking = true
  const stayAwake = () => void (isAsking && setImmediate(stayAwake))
  stayAwake()
  await Promise.all(
    Array.from({ length: connections }, () => askOn(connect(server.port, '127.0.0.1'), head, () => left-- > 0)),
  )
  const seconds = (performance.now() - startedAt) / 1000
  isAsking = false
  const after = await server.ask({ kind: 'usage' })
  return { perSecond: requests / seconds, cpuUs: (after.cpuUs - before.cpuUs) / requests }
}

/** A minimal client, so that the servers are measured rather than this process: a response ends with its only brace. */
function askOn(socket, head, more) {
  return new Promise((resolve, reject) => {
    let isWhole = true
    const next = () => {
      if (more()) socket.write(head)
      else socket.end(resolve)
    }
    socket.setNoDelay()
    socket.on('error', reject)
    socket.on('connect', next)
    socket.on('data', (chunk) => {
      if (isWhole && chunk.latin1Slice(0, 12) !== 'HTTP/1.1 200') reject(new Error(`The server answered ${chunk}`))
      isWhole = chunk[chunk.length - 1] === closingBrace
      if (isWhole) next()
    })
  })
}

async function transferFile(folder) {
  const bytes = mebibytes * mebibyte
  const server = await startServer('service', folder)
  const { key } = await server.ask({ kind: 'job' })
  const origin = `http://127.0.0.1:${server.port}`
  const { uploadUrl, downloadUrl } = await (
    await fetch(`${origin}/v1/upload`, { headers: { authorization: key } })
  ).json()
  const start = await server.ask({ kind: 'usage' })

  const uploadedAt = performance.now()
  const upload = httpRequest(uploadUrl, { method: 'PUT', headers: { 'content-length': bytes } })
  const answered = once(upload, 'response')
  await pipeline(Readable.from(repeat(Buffer.alloc(mebibyte, 'stemwork'), mebibytes)), upload)
  const [{ statusCode }] = await answered
  if (statusCode !== 200) throw new Error(`The upload was answered with ${statusCode}.`)
  const afterUpload = await server.ask({ kind: 'usage' })

  const downloadedAt = performance.now()
  const [download] = await once(httpRequest(downloadUrl).end(), 'response')
  let received = 0
  for await (const chunk of download) received += chunk.length
  if (received !== bytes) throw new Error(`The download had ${received} of ${bytes} bytes.`)
  const endedAt = performance.now()
  const afterDownload = await server.ask({ kind: 'usage' })
  server.stop()

  const grown = ({ peakBytes }) =>
    `peak ${Math.round(peakBytes / mebibyte)} MiB, ${Math.round((peakBytes - start.bytes) / mebibyte)} MiB over ` +
    'the start'
  const rate = (ms) => `${Math.round(mebibytes / (ms / 1000))} MiB/s`
  printRows([
    ['server at the start', `${Math.round(start.bytes / mebibyte)} MiB resident`],
    [`upload of ${mebibytes} MiB`, `${grown(afterUpload)}, ${rate(downloadedAt - uploadedAt)}`],
    [`download of ${mebibytes} MiB`, `${grown(afterDownload)}, ${rate(endedAt - downloadedAt)}`],
  ])
}

function* repeat(chunk, times) {
  for (let index = 0; index < times; index++) yield chunk
}

async function startServer(kind, folder) {
  const child = fork(import.meta.filename, [kind, folder])
  child.on('exit', (code) => code && process.exit(code))
  const [{ port }] = await once(child, 'message')
  return {
    port,
    async ask(message) {
      child.send(message)
      const [answer] = await once(child, 'message')
      return answer
    },
    stop: () => child.disconnect(),
  }
}

async function beServer(kind, folder) {
  const { port, answers } = kind === 'bare' ? await bareServer() : await service(folder)
  const answer = async (message) =>
    process.send(message.kind === 'usage' ? usage() : await answers[message.kind](message))
  process.on('message', (message) => void answer(message))
  process.on('disconnect', () => process.exit())
  process.send({ port })
}

function usage() {
  const { user, system } = process.cpuUsage()
  return { cpuUs: user + system, bytes: process.memoryUsage.rss(), peakBytes: process.resourceUsage().maxRSS * 1024 }
}

async function bareServer() {
  let answer = { headers: {}, body: '' }
  const server = createServer((request, response) => {
    if (answer.value === undefined) return response.writeHead(200, answer.headers).end(answer.body)
    const body = JSON.stringify(answer.value)
    response.writeHead(200, { ...answer.headers, 'content-length': Buffer.byteLength(body) }).end(body)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const answers = {
    answer(given) {
      answer = given
      return {}
    },
  }
  return { port: server.address().port, answers }
}

async function service(folder) {
  const { fsBlobs } = await import('../dist/adapters/blobs/fs/index.js')
  const { createApplication, createHandler, issueKey } = await import('../dist/http/index.js')
  const { serve } = await import('../dist/http/mounts/node.js')
  const { createEngine } = await import('../dist/index.js')
  const { inlineRunner } = await import('../dist/testing/index.js')
  const { nothing } = await import('./nothing.mjs')
  const engine = createEngine({
    workflows: [nothing],
    blobs: fsBlobs({ directory: folder }),
    runner: inlineRunner({ resolve: () => nothing }),
    limits: { maxFileBytes: mebibytes * mebibyte },
  })
  // The rate limiter counts as in production, but no request reaches its limit.
  const handler = createHandler(engine, { basePath: '/v1', rateLimits: { status: { requests: 1e9, perSeconds: 1 } } })
  const { port } = await serve(handler, { port: 0 })
  const answers = {
    async job() {
      const app = await createApplication(engine.applications, { name: 'benchmark' })
      const { key } = await issueKey(engine.applications, app.id)
      const { job } = await engine.submit({ app: app.id, workflow: nothing.id, params: {} })
      return { key, id: job.id }
    },
  }
  return { port, answers }
}

async function printMachine() {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))
  printRows([
    ['machine', machine()],
    ['versions', `stemwork ${version}, Node ${process.version}`],
    [
      'input',
      `${processes} x ${rounds} rounds of ${requests} requests over ${connections} connections, in turn; a file ` +
        `of ${mebibytes} MiB`,
    ],
  ])
}
