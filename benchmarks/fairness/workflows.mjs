// The workflows of `stemwork serve --workflows` for the fairness benchmark. They run in the process of the service,
// which is the one measured.
import { copyFile } from 'node:fs/promises'
import { z } from 'zod'
import { defineWorkflow } from '../../dist/index.js'

const small = defineWorkflow({
  id: 'benchmark/small',
  name: 'Small',
  description: 'Copies its input.',
  params: z.strictObject({ inputUrl: z.url() }),
  outputs: { copy: { fileName: 'copy.bin', contentType: 'application/octet-stream' } },
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

export default [small, nothing]
