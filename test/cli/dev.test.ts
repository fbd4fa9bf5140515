import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { createClient } from '../../src/client/client.js'
import { Stemwork, stemwork } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

/** Three services start, one after another, and each loads its model. */
vi.setConfig({ testTimeout: 240_000 })

const [library, zod] = ['../../dist/index.js', '../../node_modules/zod/index.js'].map((path) =>
  new URL(path, import.meta.url).toString(),
)
const folder = temporaryFolder()
beforeAll(async () => {
  await mkdir(join(folder, 'workflows'))
})

/** @param last code of the second step */
const workflow = (last: string) => `import { appendFile } from 'node:fs/promises'
import { defineWorkflow } from '${library}'
import { z } from '${zod}'
export default defineWorkflow({
  id: 'service/greet', name: 'Greet', description: '', params: z.object({}), inputs: [], outputs: {},
  async run({ step, detail }) {
    await step.run('first', () => appendFile(${JSON.stringify(join(folder, 'notes.txt'))}, 'first '))
    detail('said', await step.run('last', async () => ${last}))
  },
})
`
const write = (text: string) => writeFile(join(folder, 'workflows', 'greet.mjs'), text)

test('reloads a folder on each change: jobs continue with the new code, errors have file and line', async () => {
  await write(workflow('{ for (;;); }'))
  const dev = new Stemwork(['dev', '--port', '0'], folder)
  try {
    const [, baseUrl = '', apiKey] = await dev.printed('stdout', /Ready at (\S+) with the API key (\S+);/)
    const client = createClient({ baseUrl, apiKey })
    const { id } = await client.createJob({ workflow: 'service/greet', params: {} })
    await dev.printed('stderr', /step done .*"step":"first","seconds":/)
    // The endless loop is in a separate process, so the service answers.
    expect((await client.getJob(id)).status).toBe('STARTED')

    await write(`${workflow('1')}}`)
    await dev.printed('stderr', /greet\.mjs could not be loaded: SyntaxError: .*greet\.mjs:11\)/)
    const ready = dev.stdout.length
    await write(workflow("'hello'"))
    await dev.printed('stdout', new RegExp(`^[^]{${ready}}Ready at ${baseUrl} with the API key ${apiKey}`))
    expect((await client.waitForJob(id)).details).toEqual({ said: 'hello' })
    expect(await readFile(join(folder, 'notes.txt'), 'utf8')).toBe('first ')
  } finally {
    dev.kill('SIGTERM')
  }
  expect((await dev.finished()).status).toBe(0)
})

test('says what to do if there is no folder of workflows', async () => {
  const { status, stderr } = await stemwork(['dev', './none'], folder)
  expect([status, stderr]).toEqual([
    2,
    expect.stringMatching(/The folder \.\/none cannot be used: .*npm create stemwork/),
  ])
})
