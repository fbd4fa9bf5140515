// Well-behaved applications, in one process: each submits small jobs, polls them to their end, reads the result, lists
// its jobs and uploads a file; every request is timed. Steady applications do so every few seconds, busy ones without a
// pause.
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { setSessionPriority } from '../../build/core/engine/runner/process-priority.js'
import { atRate, client, json } from '../fairness/api.mjs'

const [base, folder, pace, ...keys] = process.argv.slice(2)
/** Interval of each application. */
const jobsEverySeconds = 4
const song = Buffer.alloc(20_000, 'song')

const asks = keys.map((key) => client(base, key, { sockets: 4 }))
const inputs = []
for (const ask of asks) inputs.push(await upload(ask))
let samples
let stop = new AbortController()
let ended = Promise.resolve()
const probe = await open(join(folder, `probe-${pace}`), 'w')
// The same priority as the hostile applications, which the busy ones replace.
if (pace === 'busy') await setSessionPriority(process.pid, 19)

process.on('message', ({ kind }) => (kind === 'start' ? start() : void stopAndTell()))
process.on('disconnect', () => process.exit())
process.send('ready')

function start() {
  samples = {
    submit: [],
    status: [],
    list: [],
    upload: [],
    result: [],
    jobStart: [],
    jobRun: [],
    disk: [],
    failures: [],
  }
  stop = new AbortController()
  if (pace === 'busy') return void (ended = Promise.all(keys.map((_, app) => useAgain(app, stop.signal))))
  let next = 0
  const probing = atRate(2, stop.signal, () => timed('disk', syncedWrite))
  const using = atRate(keys.length / jobsEverySeconds, stop.signal, () => use(next++ % keys.length))
  ended = Promise.all([probing, using])
}

function use(app) {
  return useService(asks[app], inputs[app]).catch((error) => void samples.failures.push(String(error)))
}

async function useAgain(app, signal) {
  while (!signal.aborted) {
    await use(app)
    // Keeps refusals from repeating at once; otherwise it hardly matters.
    await delay(20)
  }
}

async function stopAndTell() {
  stop.abort()
  await ended
  process.send(samples)
}

async function useService(ask, inputUrl) {
  const sentAt = Date.now()
  const body = JSON.stringify({ workflow: 'benchmark/copy', params: { inputUrl } })
  const { id } = await timed('submit', () => json(ask('/job', { method: 'POST', body })))
  await timed('list', () => json(ask('/job?size=20')))
  await timed('upload', () => upload(ask))
  let status
  do {
    await delay(50)
    ;({ status } = await timed('status', () => json(ask(`/job/${id}/status`))))
  } while (status !== 'SUCCEEDED' && status !== 'FAILED')
  const job = await json(ask(`/job/${id}`))
  if (status === 'FAILED') throw new Error(`A job ended FAILED: ${job.error?.message}`)
  samples.jobStart.push(Math.max(0, Date.parse(job.startedAt) - sentAt))
  samples.jobRun.push(Date.parse(job.completedAt) - Date.parse(job.startedAt))
  const { status: code } = await timed('result', () => ask(job.result.copy))
  if (code !== 200) throw new Error(`A result answered ${code}.`)
}

/** Times the minimum cost of a write on this disk. */
async function syncedWrite() {
  await probe.write(song)
  await probe.sync()
}

async function upload(ask) {
  const { uploadUrl, downloadUrl } = await json(ask('/upload'))
  await json(ask(uploadUrl, { method: 'PUT', body: song }))
  return downloadUrl
}

async function timed(name, work) {
  const startedAt = performance.now()
  const result = await work()
  samples[name].push(performance.now() - startedAt)
  return result
}
