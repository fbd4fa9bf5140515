// The hostile application, in its own process: its clients, its tarpit servers and its webhook receivers.
import { once } from 'node:events'
import { createServer as createHttpServer, request as httpRequest } from 'node:http'
import { createServer } from 'node:net'
import { setPriority } from 'node:os'
import { atRate, client, json } from './api.mjs'

const [base, key, mebibytesPerSecond] = process.argv.slice(2)
const uploads = 40
const uploadBytes = 2 * 1024 ** 2
const pieceBytes = 64 * 1024
// In production it has its own machines. Here it only gets the CPU time that the service and its other client leave.
setPriority(19)

const never = new AbortController().signal
const ask = client(base, key)
const counts = {}

/** Sends a response head and then a byte every 5 s. */
const tarpit = await listening(
  createHttpServer((_request, response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('s'), 5000)
    response.on('close', () => clearInterval(timer))
    counts.tarpit = (counts.tarpit ?? 0) + 1
  }),
)
/** Accepts connections and never answers. */
const silent = await listening(
  createServer((socket) => {
    socket.on('error', () => {})
    counts.silent = (counts.silent ?? 0) + 1
  }),
)
const dead = await listening(createServer())
await new Promise((resolve) => dead.server.close(resolve))

await makeLargeRecords(100)
process.on('message', () => storm())
process.on('disconnect', () => process.exit())
process.send('ready')

function storm() {
  const attacks = [
    atRate(3, never, () => counted('tarpit job', submit('benchmark/small', `${tarpit.url}/song`))),
    atRate(3, never, () => counted('webhook job', submit('benchmark/nothing', undefined, silent.url))),
    atRate(3, never, () => counted('webhook job', submit('benchmark/nothing', undefined, dead.url))),
    // Twice the allowed rate, so that its token bucket is always empty.
    atRate(20, never, () => counted('refused body', ask('/job', { method: 'POST', body: refusedBody }))),
    ...Array.from({ length: 8 }, (_, index) => listForEver(index % 2 === 0 ? 100 : 40)),
    ...Array.from({ length: uploads }, () => uploadForEver()),
  ]
  void Promise.all(attacks)
  setInterval(() => process.send(counts), 1000)
}

const refusedBody = JSON.stringify({
  workflow: 'benchmark/nothing',
  params: {},
  metadata: Object.fromEntries(Array.from({ length: 22_000 }, (_, index) => [`k${index}`, 1])),
})

function submit(workflow, inputUrl, webhook) {
  const body = { workflow, params: { inputUrl }, ...(webhook ? { webhook: { url: webhook } } : {}) }
  return ask('/job', { method: 'POST', body: JSON.stringify(body) })
}

async function listForEver(size) {
  for (;;) await counted(`list of ${size}`, ask(`/job?size=${size}&batchName=large`), 100)
}

async function uploadForEver() {
  for (;;) await counted('upload', upload(), 200)
}

async function upload() {
  const { uploadUrl } = await json(ask('/upload'))
  const request = httpRequest(uploadUrl, { method: 'PUT', headers: { 'content-length': uploadBytes } })
  const answered = once(request, 'response')
  answered.catch(() => {})
  for (let sent = 0; sent < uploadBytes; sent += pieceBytes) {
    await share(pieceBytes)
    if (!request.write(Buffer.alloc(pieceBytes, sent))) await Promise.race([once(request, 'drain'), answered])
  }
  request.end()
  const [response] = await answered
  response.resume()
  return { status: response.statusCode }
}

let freeAt = 0

/** Waits for this chunk's turn on the uplink that all uploads share. */
async function share(bytes) {
  freeAt = Math.max(freeAt, performance.now()) + (bytes / (mebibytesPerSecond * 1024 ** 2)) * 1000
  await new Promise((resolve) => setTimeout(resolve, freeAt - performance.now()))
}

/** Counts the answers by status; after a refusal it retries soon, ignoring `Retry-After`. */
async function counted(what, answer, pauseMs = 0) {
  const status = await answer.then(
    ({ status }) => status,
    (error) => /answered (\d+)/.exec(String(error))?.[1] ?? 'broken',
  )
  counts[`${what}: ${status}`] = (counts[`${what}: ${status}`] ?? 0) + 1
  if (status !== 200) await new Promise((resolve) => setTimeout(resolve, pauseMs))
}

/** Creates jobs with records of the largest allowed size, for the lists. */
async function makeLargeRecords(count) {
  const body = JSON.stringify({
    workflow: 'benchmark/nothing',
    batchName: 'large',
    params: { filler: 'x'.repeat(16_000) },
    metadata: Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`key-${index}`, 'y'.repeat(500)])),
  })
  for (let made = 0; made < count;) {
    const { status } = await ask('/job', { method: 'POST', body })
    if (status === 200) made++
    else await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function listening(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${server.address().port}` }
}
