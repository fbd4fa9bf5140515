// The hostile applications, in one process: each makes every expensive request at once, as often as its limits allow.
import { createServer as createHttpServer, get } from 'node:http'
import { setMaxListeners } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { setSessionPriority } from '../../build/core/engine/runner/process-priority.js'
import { client, json } from '../fairness/api.mjs'

const [base, ...keys] = process.argv.slice(2)
const streams = 20
const songSeconds = 60

/** Parts of the storm to run, to find what is expensive; all if unset. */
const lanes = process.env.STEMWORK_BENCHMARK_LANES?.split(',') ?? []
const counts = {}
/** 9 KB/s, which is above the lowest allowed rate. */
const slow = await listening(
  createHttpServer((_request, response) => {
    response.writeHead(200, { 'content-length': 50_000_000 })
    const timer = setInterval(() => response.write(Buffer.alloc(9_000)), 1000)
    response.on('close', () => clearInterval(timer))
  }),
)
/** Accepts connections and never answers. */
const silent = await listening(createServer((socket) => socket.on('error', () => {})))
const dead = await listening(createServer())
await new Promise((resolve) => dead.server.close(resolve))

/** Resolves while the storm is on. */
let storming = gate()
let calm = pause()
const prepared = await Promise.all(keys.map((key) => prepare(client(base, key, { sockets: 32 }), key)))
// In production they have their own machines. Here they only get the CPU time that the others and the jobs leave.
await setSessionPriority(process.pid, 19)
for (const one of prepared) storm(one)
process.on('message', (what) => {
  if (what === 'storm') {
    calm = pause()
    storming.open()
  } else {
    storming = gate()
    calm.abort()
  }
})
setInterval(() => process.send(counts), 1000)
process.on('disconnect', () => process.exit())
process.send('ready')

/** Creates a song and a result of it. */
async function prepare(ask, key) {
  const { uploadUrl, downloadUrl } = await json(ask('/upload'))
  await json(ask(uploadUrl, { method: 'PUT', body: wav(songSeconds) }))
  const { id } = await json(ask('/job', submission('benchmark/copy', { inputUrl: downloadUrl })))
  while ((await json(ask(`/job/${id}/status`))).status !== 'SUCCEEDED') await delay(100)
  return { ask, key, id, songUrl: downloadUrl }
}

function storm({ ask, key, id, songUrl }) {
  if (isChosen('stream')) for (let n = 0; n < streams; n++) follow(key)
  const jobs = (what, body) => void forEver(what, 200, () => ask('/job', body))
  jobs('slow origin', submission('benchmark/copy', { inputUrl: `${slow.url}/song` }))
  for (const { url } of [silent, dead]) jobs('dead receiver', submission('benchmark/nothing', {}, { webhook: { url } }))
  jobs('large record', submission('benchmark/nothing', { filler: 'x'.repeat(16_000) }, { batchName: 'large' }))
  jobs('copy', submission('benchmark/copy', { inputUrl: songUrl }))
  void forEver('peaks', 0, async () => {
    // Peaks of a new result each time, because those of an old result are cached.
    const [job] = (await json(ask('/job?status=SUCCEEDED&workflow=benchmark/copy&size=1'))).jobs ?? []
    return ask(`/job/${job?.id ?? id}/peaks/copy`)
  })
  for (let n = 0; n < 5; n++)
    void forEver('zip', 0, async () =>
      ask((await json(ask(`/archive?job=${id}`))).url, { headers: { authorization: key } }),
    )
  void forEver('bulk delete', 1000, () =>
    ask('/job/delete', { method: 'POST', body: JSON.stringify({ batchName: 'large' }) }),
  )
  const begin = { method: 'POST', headers: { 'tus-resumable': '1.0.0', 'upload-length': '1000000' } }
  for (let n = 0; n < 4; n++) void forEver('upload begun', 0, () => ask('/upload/resumable', begin))
  for (let n = 0; n < 4; n++) void forEver('long list', 0, () => ask('/job?size=100'))
  const guess = client(base, 'a wrong key', { sockets: 4 })
  for (let n = 0; n < 4; n++) void forEver('wrong key', 0, () => guess('/job'))
}

/** Reads a stream of all jobs to its end, and reopens it. */
function follow(key) {
  const open = async () => {
    await storming.opened
    const options = { headers: { authorization: key }, agent: false, signal: calm.signal }
    const request = get(`${base}/job/events`, options, (response) => {
      count(`stream: ${response.statusCode}`)
      response.on('error', () => {}).resume()
    })
    request.on('error', () => {}).on('close', () => setTimeout(() => void open(), 500))
  }
  void open()
}

async function forEver(what, pauseMs, work) {
  if (!isChosen(what)) return
  for (;;) {
    await storming.opened
    const status = await work().then(
      (answer) => answer.status,
      (error) => /answered (\d+)/.exec(String(error))?.[1] ?? 'broken',
    )
    count(`${what}: ${status}`)
    // After a refusal it retries soon, ignoring `Retry-After`.
    await delay(status < 300 ? pauseMs : Math.max(pauseMs, 100))
  }
}

function isChosen(what) {
  return lanes.length === 0 || lanes.includes(what)
}

function count(what) {
  counts[what] = (counts[what] ?? 0) + 1
}

function submission(workflow, params, more = {}) {
  return { method: 'POST', body: JSON.stringify({ workflow, params, ...more }) }
}

function wav(seconds) {
  const bytes = seconds * 44_100 * 4
  const file = Buffer.alloc(44 + bytes)
  file.write('RIFF', 0)
  file.writeUInt32LE(36 + bytes, 4)
  file.write('WAVEfmt ', 8)
  for (const [at, size, value] of [
    [16, 4, 16],
    [20, 2, 1],
    [22, 2, 2],
    [24, 4, 44_100],
    [28, 4, 44_100 * 4],
    [32, 2, 4],
    [34, 2, 16],
    [40, 4, bytes],
  ])
    file.writeUIntLE(value, at, size)
  file.write('data', 36)
  for (let at = 44; at < file.length; at += 2) file.writeInt16LE(((at * 2654435761) >>> 16) % 20_000, at)
  return file
}

async function listening(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${server.address().port}` }
}

function pause() {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

function gate() {
  let open = () => {}
  const opened = new Promise((resolve) => (open = resolve))
  return { opened, open }
}
