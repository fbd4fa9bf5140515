// The well-behaved application, in its own process: submits small jobs, polls them to their end, and measures both.
import { atRate, client, json } from './api.mjs'

const [base, key] = process.argv.slice(2)
const submitsPerSecond = 5
const pollsPerSecond = 20
const pollEveryMs = 50

const ask = client(base, key)
const { uploadUrl, downloadUrl } = await json(ask('/upload'))
await json(ask(uploadUrl, { method: 'PUT', body: Buffer.alloc(20_000, 'song') }))

let samples
let stop = new AbortController()
let ended = Promise.resolve()
let knownId

process.on('message', ({ kind }) => {
  if (kind === 'start') start()
  else void stopAndTell()
})
process.on('disconnect', () => process.exit())
process.send('ready')

function start() {
  samples = { answerMs: [], startMs: [], statusMs: [], failures: [] }
  stop = new AbortController()
  ended = Promise.all([
    atRate(submitsPerSecond, stop.signal, () => noted(runJob)),
    // Polling continues while the service has no job for this application.
    atRate(pollsPerSecond, stop.signal, () => noted(async () => void (knownId && (await status(knownId))))),
  ])
}

async function stopAndTell() {
  stop.abort()
  await ended
  process.send(samples)
}

async function noted(work) {
  try {
    await work()
  } catch (error) {
    samples.failures.push(String(error))
  }
}

async function runJob() {
  const own = samples
  const sentAt = performance.timeOrigin + performance.now()
  const { id } = await json(
    ask('/job', {
      method: 'POST',
      body: JSON.stringify({ workflow: 'benchmark/small', params: { inputUrl: downloadUrl } }),
    }),
  )
  own.answerMs.push(performance.timeOrigin + performance.now() - sentAt)
  knownId ??= id
  while (!['SUCCEEDED', 'FAILED'].includes((await status(id)).status))
    await new Promise((resolve) => setTimeout(resolve, pollEveryMs))
  const job = await json(ask(`/job/${id}`))
  if (job.status !== 'SUCCEEDED') throw new Error(`A job ended ${job.status}: ${job.error?.message}`)
  // Both times are from this machine's clock.
  own.startMs.push(Date.parse(job.startedAt) - sentAt)
}

async function status(id) {
  const askedAt = performance.now()
  const answer = await json(ask(`/job/${id}/status`))
  samples.statusMs.push(performance.now() - askedAt)
  return answer
}
