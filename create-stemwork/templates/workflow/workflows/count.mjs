import { readFile, writeFile } from 'node:fs/promises'
import { defineWorkflow, StemworkError } from 'stemwork'
import { z } from 'zod'

// A workflow is a function made of steps. The result of a finished step is kept, so the step never runs again.
export default defineWorkflow({
  id: 'service/count',
  name: 'Count words',
  description: 'How often each word occurs in a text.',
  params: z.object({ inputUrl: z.url() }),
  outputs: { report: { fileName: 'words.json', contentType: 'application/json' } },
  async run({ step, inputs, detail }) {
    const words = await step.run('read', async () => {
      const text = await readFile(inputs.inputUrl.path, 'utf8')
      const found = text.toLowerCase().match(/\p{L}+/gu)
      if (!found) throw new StemworkError('BAD_INPUT', 'The text has no words. Send one that has.')
      return found
    })
    const report = await step.run('count', async ({ file }) => {
      /** @type {Record<string, number>} */
      const counts = {}
      for (const word of words) counts[word] = (counts[word] ?? 0) + 1
      const made = file('words.json')
      await writeFile(made.path, JSON.stringify(counts))
      return made
    })
    detail('words', words.length)
    return { report }
  },
})
