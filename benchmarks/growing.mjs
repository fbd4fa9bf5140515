// How soon the first audio of a job can be read while it runs: the position in the song, in segments of the model and
// in time; and whether the whole stream equals the result, apart from the header. Option: --seconds=N (of the song).
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '../build/client/client.js'
import { openWavWriter } from '../build/core/media/encode/wav-writer.js'
import { createApplication, createHandler, issueKey } from '../build/http/index.js'
import { serve } from '../build/http/mounts/node.js'
import { createEngine, localFile } from '../build/index.js'
import { machine } from './shared/benchmark.mjs'

const sampleRate = 44_100
const headerBytes = 80
const text = process.argv.find((argument) => argument.startsWith('--seconds='))
const seconds = text === undefined ? 240 : Number(text.slice('--seconds='.length))
const { chunk: segment, stft } = JSON.parse(
  await readFile(new URL('../models/embedded/model.json', import.meta.url), 'utf8'),
)

const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
const engine = createEngine()
try {
  const song = join(folder, 'song.wav')
  const writer = await openWavWriter(song, { sampleRate, channels: 2, format: '16' })
  const noise = Float32Array.from({ length: sampleRate }, () => Math.random() - 0.5)
  for (let second = 0; second < seconds; second++) await writer.write([noise, noise])
  await writer.close()
  await engine.start()
  const { id: app } = await createApplication(engine.applications, { name: 'Benchmark' })
  const { key } = await issueKey(engine.applications, app)
  const server = await serve(createHandler(engine), { port: 0 })
  const client = createClient({ baseUrl: server.origin, apiKey: key })
  console.log(`${machine()}; Node ${process.version}; a song of ${seconds} s\n`)
  const startedAt = performance.now()
  const { job } = await engine.submit({
    app,
    workflow: 'service/stems-vocals-accompaniment',
    params: {},
    inputs: { inputUrl: localFile(song) },
  })
  const chunks = []
  let first
  const { stream } = await client.growing(job.id, 'vocals')
  for await (const chunk of stream) {
    chunks.push(chunk)
    const audioBytes = chunks.reduce((sum, { length }) => sum + length, 0) - headerBytes
    if (!first && audioBytes > 0)
      first = { ms: performance.now() - startedAt, progress: (await client.getJob(job.id)).progress }
  }
  const totalMs = performance.now() - startedAt
  const { result } = await client.waitForJob(job.id)
  const whole = Buffer.from(await (await (await client.download(result.vocals)).blob()).arrayBuffer())
  const read = Buffer.concat(chunks)
  const isSame = read.length === whole.length && read.subarray(headerBytes).equals(whole.subarray(headerBytes))
  const segmentSeconds = (segment.frames * stft.hop) / sampleRate
  console.log(
    `first audio after ${first.ms.toFixed(0)} ms of ${totalMs.toFixed(0)} ms, at ` +
      `${(first.progress * seconds).toFixed(1)} s of the song`,
  )
  console.log(`a segment of the model lasts ${segmentSeconds.toFixed(1)} s; aim: within two`)
  console.log(`bytes after the header: ${isSame ? 'the same as in the result' : 'DIFFERENT'}`)
  if (!isSame) process.exitCode = 1
  await server.close()
} finally {
  await engine.close({ timeoutMs: 0 })
  await rm(folder, { recursive: true })
}
