// One workflow made of several: separates a song, measures each stem, and writes the vocals as FLAC: node
// examples/composed-workflow.mjs song.wav
import { composeWorkflow, createEngine, localFile, loudnessWorkflow, stemsWorkflow, transcodeWorkflow } from 'stemwork'

// Plain data: it could also be a JSON file for `stemwork serve --workflows composed.json`.
const composition = {
  id: 'service/vocals-and-loudness',
  name: 'Vocals and loudness',
  description: 'The vocals as FLAC, and the loudness of both stems.',
  params: { gainDb: 'encode.gainDb' },
  steps: {
    separate: { workflow: 'service/stems-vocals-accompaniment', params: { format: '32f' }, weight: 20 },
    measureVocals: { workflow: 'service/loudness', inputs: { inputUrl: 'separate.vocals' }, mayFail: true },
    measureRest: { workflow: 'service/loudness', inputs: { inputUrl: 'separate.accompaniments' }, mayFail: true },
    encode: { workflow: 'service/transcode', inputs: { inputUrl: 'separate.vocals' }, params: { format: 'flac' } },
  },
  outputs: { vocals: 'encode.audio', vocalsLoudness: 'measureVocals.report', restLoudness: 'measureRest.report' },
}

const parts = [stemsWorkflow(), loudnessWorkflow(), transcodeWorkflow()]
const engine = createEngine({ workflows: [composeWorkflow(composition, { workflows: parts })] })
const { job } = await engine.submit({
  app: 'me',
  workflow: composition.id,
  params: { gainDb: -3 },
  inputs: { inputUrl: localFile(process.argv[2]) },
})
const done = await engine.run(job.id)
if (done.status !== 'SUCCEEDED') throw new Error(done.error.message)
console.log(Object.values(done.outputs).map(({ fileName, bytes }) => `${fileName}: ${bytes} bytes`))
console.log(done.details.steps.measureRest.loudness, done.details.failed ?? 'nothing failed')
await engine.close()
