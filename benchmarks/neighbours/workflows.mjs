// Small jobs, so that the service and not the work is measured.
import { copyFile } from 'node:fs/promises'
import { z } from 'zod'
import { defineWorkflow } from '../../dist/index.js'

const copy = defineWorkflow({
  id: 'benchmark/copy',
  name: 'Copy',
  description: 'Copies its input.',
  params: z.strictObject({ inputUrl: z.url() }),
  outputs: { copy: { fileName: 'copy.wav', contentType: 'audio/wav' } },
  stages: [{ name: 'copy', run: ({ inputs, outputPath }) => copyFile(inputs.inputUrl.path, outputPath('copy')) }],
})

const nothing = defineWorkflow({
  id: 'benchmark/nothing',
  name: 'Nothing',
  description: 'Does nothing, so that its job ends at once.',
  params: z.looseObject({}),
  inputs: [],
  outputs: {},
  stages: [{ name: 'nothing', async run() {} }],
})

export default [copy, nothing]
