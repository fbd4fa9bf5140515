// Effect of a separation on the process that embeds the engine: its event-loop delay and the latency of its HTTP
// responses, idle and during separations, alternating within one run. The requests come from another process. Options:
// --short for a quick look.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { openAsBlob } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { createEngine } from '../build/index.js'
import { fsBlobs } from '../build/adapters/blobs/fs/index.js'
import { sqliteStores } from '../build/adapters/stores/sqlite/index.js'
import { openWavWriter } from '../build/core/media/encode/wav-writer.js'
import { createHandler } from '../build/http/index.js'
import { serve } from '../build/http/mounts/node.js'

const sampleRate = 44_100
const requestsPerSecond = 100
const limits = { loopMs: 20, httpRatio: 2 }
const workflow = 'service/stems-vocals-accompaniment'

if (process.argv[2] === 'probe') await probe(process.argv[3])
else
  await main({
    rounds: process.argv.includes('--short') ? 1 : 4,
    songSeconds: process.argv.includes('--short') ? 60 : 180,
  })

async function main({ rounds, songSeconds }) {
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
  const { jobs, applications, close } = sqliteStores({ path: join(folder, 'stemwork.db') })
  const blobs = fsBlobs({ directory: join(folder, 'blobs') })
  const engine = createEngine({ jobs, applications, blobs, fetch: { allowPrivate: true } })
  const handler = createHandler(engine, {
    anonymous: { id: 'benchmark', name: 'benchmark' },
    rateLimits: { create: false, status: false, other: false },
  })
  const server = await serve(handler, { port: 0 })
  const job = { workflow, params: { inputUrl: await upload(server.origin, join(folder, 'song.wav'), songSeconds) } }
  const warmUp = await post(server.origin, job)
  await engine.start()
  await end(server.origin, warmUp)

  console.log(
    `machine   ${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)} ` +
      `at the start, Node ${process.version}`,
  )
  console.log(
    `input     ${songSeconds} s of noise, 16-bit stereo WAV; SQLite store and blobs on disk; ${requestsPerSecond} ` +
      'requests/s of GET /job/:id',
  )
  const child = fork(import.meta.filename, ['probe', `${server.origin}/job/${warmUp}`])
  await once(child, 'message')
  const samples = { idle: [], busy: [] }
  try {
    for (let round = 0; round < rounds; round++) {
      const startedAt = performance.now()
      const id = await post(server.origin, {
        ...job,
        params: { inputUrl: await upload(server.origin, join(folder, 'song.wav')) },
      })
      samples.busy.push(await during(child, () => end(server.origin, id)))
      const busyMs = performance.now() - startedAt
      samples.idle.push(await during(child, () => delay(busyMs)))
    }
  } finally {
    child.disconnect()
    await once(child, 'exit')
    await server.close()
    await engine.close()
    close()
    await rm(folder, { recursive: true })
  }
  report(samples)
}

/** Event-loop delay of this process, and response times measured by the probe process, while `work` runs. */
async function during(child, work) {
  child.send('start')
  const loop = monitorEventLoopDelay({ resolution: 1 })
  loop.enable()
  await work()
  loop.disable()
  child.send('stop')
  const [requestMs] = await once(child, 'message')
  return { loopP50: loop.percentile(50) / 1e6, loopP99: loop.percentile(99) / 1e6, loopMax: loop.max / 1e6, requestMs }
}

/** The probe process: sends requests at a steady rate and times the responses. */
async function probe(url) {
  let times
  process.on('message', (message) => {
    if (message === 'start') times = []
    else process.send(times.splice(0))
  })
  process.on('disconnect', () => process.exit())
  process.send('ready')
  for (let dueAt = performance.now(); ; dueAt += 1000 / requestsPerSecond) {
    await delay(Math.max(0, dueAt - performance.now()))
    const from = performance.now()
    const response = await fetch(url)
    await response.text()
    if (!response.ok) throw new Error(`The service answered ${response.status}.`)
    times?.push(performance.now() - from)
  }
}

function report({ idle, busy }) {
  const requests = {
    idle: idle.flatMap(({ requestMs }) => requestMs),
    busy: busy.flatMap(({ requestMs }) => requestMs),
  }
  const rows = [
    ['event-loop delay p50, ms', median(idle, 'loopP50'), median(busy, 'loopP50')],
    ['event-loop delay p99, ms', median(idle, 'loopP99'), median(busy, 'loopP99'), `below ${limits.loopMs}`],
    [
      'event-loop delay, worst, ms',
      Math.max(...idle.map(({ loopMax }) => loopMax)),
      Math.max(...busy.map(({ loopMax }) => loopMax)),
    ],
    ['HTTP answer p50, ms', percentile(requests.idle, 0.5), percentile(requests.busy, 0.5)],
    [
      'HTTP answer p99, ms',
      percentile(requests.idle, 0.99),
      percentile(requests.busy, 0.99),
      `below ${limits.httpRatio} x idle`,
    ],
  ]
  console.log(
    `samples   ${idle.length} round(s), medians over them; ${requests.idle.length} answers idle, ` +
      `${requests.busy.length} during separations\n`,
  )
  console.log(`${''.padEnd(28)}     idle     busy    ratio   aim`)
  for (const [name, calm, loaded, aim = ''] of rows) {
    const numbers = [calm, loaded, loaded / calm].map((value) => value.toFixed(2).padStart(9))
    console.log(`${name.padEnd(28)}${numbers.join('')}   ${aim}`)
  }
}

function median(rounds, name) {
  return percentile(
    rounds.map((round) => round[name]),
    0.5,
  )
}

function percentile(values, share) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
}

/** Uploads the file; generates it first if its length is given. */
async function upload(origin, path, seconds) {
  if (seconds) {
    const writer = await openWavWriter(path, { sampleRate, channels: 2, format: '16' })
    const block = [new Float32Array(sampleRate), new Float32Array(sampleRate)]
    for (let second = 0; second < seconds; second++) {
      for (const plane of block) for (let i = 0; i < plane.length; i++) plane[i] = Math.random() - 0.5
      await writer.write(block)
    }
    await writer.close()
  }
  const { uploadUrl, downloadUrl } = await (await fetch(`${origin}/upload`)).json()
  await fetch(uploadUrl, { method: 'PUT', body: await openAsBlob(path) })
  return downloadUrl
}

async function post(origin, job) {
  const response = await fetch(`${origin}/job`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(job),
  })
  const { id, message } = await response.json()
  if (!id) throw new Error(message)
  return id
}

async function end(origin, id) {
  for (;;) {
    const { status, error } = await (await fetch(`${origin}/job/${id}`)).json()
    if (status === 'FAILED') throw new Error(error.message)
    if (status === 'SUCCEEDED') return
    await delay(500)
  }
}
