import { copyFile, readFile, stat, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { badInput } from '../../src/core/engine/errors.js'
import { defineWorkflow, type Workflow } from '../../src/core/engine/workflow/workflow.js'

export const stemsId = 'service/stems-vocals-accompaniment'
const params = z.object({ inputUrl: z.url() })

/**
 * A workflow with the id and outputs of the stems workflow that returns its input as both stems, to test the service
 * around it.
 */
export function copyingStems(): Workflow {
  return defineWorkflow({
    id: stemsId,
    name: 'Vocals and accompaniment',
    description: 'Separates a mixed track into vocals and accompaniments.',
    params,
    outputs: {
      vocals: { fileName: 'vocals.wav', contentType: 'audio/wav' },
      accompaniments: { fileName: 'accompaniments.wav', contentType: 'audio/wav' },
    },
    stages: [
      {
        name: 'copy',
        async run({ inputs, outputPath, downloadName, progress, detail }) {
          if ((await readFile(inputs.inputUrl.path)).byteLength === 0)
            throw badInput('decode_failed', 'The file is empty.')
          await copyFile(inputs.inputUrl.path, outputPath('vocals'))
          const { name } = inputs.inputUrl
          if (name !== undefined) downloadName('vocals', `${name} - vocals.wav`)
          detail('inode', (await stat(outputPath('vocals'))).ino)
          progress(0.5)
          await copyFile(inputs.inputUrl.path, outputPath('accompaniments'))
          detail('model', { name: 'none' })
        },
      },
    ],
  })
}

/** A workflow that runs until it is released or stopped, with its progress at one half. */
export function heldWorkflow(): { workflow: Workflow; release(): void } {
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const workflow = defineWorkflow({
    id: 'service/held',
    name: 'Held',
    description: 'Waits until the test lets it go.',
    params: z.object({ note: z.string().optional() }),
    inputs: [],
    outputs: { report: { fileName: 'report.json', contentType: 'application/json' } },
    stages: [
      {
        name: 'hold',
        async run({ outputPath, progress, signal }) {
          progress(0.5)
          await Promise.race([
            released,
            new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
          ])
          await writeFile(outputPath('report'), '{}')
        },
      },
    ],
  })
  return { workflow, release }
}
