// Measures and analyzes a song, writes it at -16 LUFS, and makes a teaser of ten seconds: node examples/audio.mjs
// song.flac
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { analyzeWorkflow, createEngine, localFile, loudnessWorkflow, transcodeWorkflow } from 'stemwork'

const engine = createEngine({ workflows: [loudnessWorkflow(), transcodeWorkflow(), analyzeWorkflow()] })

const measured = await run('service/loudness', { normalizeTo: -16, format: 'flac' })
console.log(measured.details.loudness)
await save(measured.outputs.normalized, 'loud.flac')

const { details } = await run('service/analyze', {})
console.log(details.tempo, details.key)

const teaser = await run('service/transcode', {
  format: '16',
  lengthSeconds: 10,
  fadeInSeconds: 0.1,
  fadeOutSeconds: 1,
})
await save(teaser.outputs.audio, 'teaser.wav')
await engine.close()

async function run(workflow, params) {
  const { job } = await engine.submit({ app: 'me', workflow, params, inputs: { inputUrl: localFile(process.argv[2]) } })
  const done = await engine.run(job.id)
  if (done.status !== 'SUCCEEDED') throw new Error(done.error.message)
  return done
}

async function save({ key }, path) {
  const { body } = await engine.blobs.get(key)
  await pipeline(body, createWriteStream(path))
}
