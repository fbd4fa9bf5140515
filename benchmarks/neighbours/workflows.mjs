// Small jobs, so that the service and not the work is measured. They run in child processes, as all work on files does.
import { copyFile } from 'node:fs/promises'
import { z } from 'zod'
import { defineWorkflow } from '../../dist/index.js'

const definitions = {
  'benchmark/copy': {
    name: 'Copy',
    description: 'Copies its input.',
    params: z.strictObject({ inputUrl: z.url() }),
    outputs: { copy: { fileName: 'copy.wav', contentType: 'audio/wav' } },
    stages: [{ name: 'copy', run: ({ inputs, outputPath }) => copyFile(inputs.inputUrl.path, outputPath('copy')) }],
  },
  'benchmark/nothing': {
    name: 'Nothing',
    description: 'Does nothing, so that its job ends at once.',
    params: z.looseObject({}),
    inputs: [],
    outputs: {},
    stages: [{ name: 'nothing', async run() {} }],
  },
}

export default function workflow({ id }) {
  return defineWorkflow({ id, ...definitions[id], module: { url: import.meta.url, settings: { id } } })
}

export const workflows = Object.keys(definitions).map((id) => workflow({ id }))
