// A workflow of your own, run without HTTP: measures the level (RMS) of a 16-bit WAV file.
import { readFile, writeFile } from 'node:fs/promises'
import { createEngine, defineWorkflow, localFile, StemworkError } from 'stemwork'
import { z } from 'zod'

const level = defineWorkflow({
  id: 'service/level',
  name: 'Level',
  description: 'Reports the RMS level of a 16-bit WAV file.',
  params: z.object({ inputUrl: z.url() }),
  outputs: { report: { fileName: 'report.json', contentType: 'application/json' } },
  stages: [
    {
      name: 'measure',
      async run({ inputs, outputPath, progress }) {
        const file = await readFile(inputs.inputUrl.path)
        if (file.toString('latin1', 0, 4) !== 'RIFF')
          throw new StemworkError('BAD_INPUT', 'The file is not a WAV file. Convert it to 16-bit WAV.')
        let sum = 0
        for (let at = 44; at + 1 < file.length; at += 2) sum += (file.readInt16LE(at) / 32768) ** 2
        progress(0.5)
        const decibels = 10 * Math.log10(sum / ((file.length - 44) / 2))
        await writeFile(outputPath('report'), JSON.stringify({ rmsDecibels: Number(decibels.toFixed(2)) }))
      },
    },
  ],
})

const engine = createEngine({ workflows: [level] })
const { job } = await engine.submit({
  app: 'me',
  workflow: 'service/level',
  inputs: { inputUrl: localFile(process.argv[2]) },
})
const done = await engine.run(job.id)
if (done.status !== 'SUCCEEDED') throw new Error(done.error.message)
const { body } = await engine.blobs.get(done.outputs.report.key)
const chunks = []
for await (const chunk of body) chunks.push(chunk)
console.log(Buffer.concat(chunks).toString())
await engine.close()
