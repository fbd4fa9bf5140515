import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { localFile } from '../../../src/core/engine/intake/local-file.js'
import { defineWorkflow } from '../../../src/core/engine/workflow/workflow.js'
import { startService } from '../../http/harness.js'
import { keys, testEngine, textOf } from '../harness.js'
import { temporaryFolder } from '../../temporary-folder.js'

const folder = temporaryFolder()
let song: string
beforeAll(async () => {
  song = join(folder, 'my söng #1.mp3')
  await writeFile(song, 'la la la')
})

const echo = defineWorkflow({
  id: 'test/echo',
  name: 'Echo',
  description: 'Hands its input back.',
  params: z.strictObject({ inputUrl: z.url({ protocol: /^https?$/ }) }),
  outputs: { copy: { fileName: 'copy.txt', contentType: 'text/plain' } },
  stages: [
    {
      name: 'copy',
      run: async ({ inputs, outputPath }) => writeFile(outputPath('copy'), await readFile(inputs.inputUrl.path)),
    },
  ],
})
const job = { app: 'me', workflow: 'test/echo' }

describe('a local file', () => {
  test.each(['a path', 'a file URL', 'the text of a file URL'])('is the input of a job, given as %s', async (form) => {
    const { engine, parts } = testEngine(echo)
    const url = pathToFileURL(song)
    const given = form === 'a path' ? song : form === 'a file URL' ? url : url.href
    const { job: created } = await engine.submit({ ...job, inputs: { inputUrl: localFile(given) } })
    // Only the name of the file, not its address.
    expect(created.params).toEqual({ inputUrl: `https://local-file.invalid/${encodeURIComponent('my söng #1.mp3')}` })
    expect(JSON.stringify(created)).not.toContain(folder)
    const done = await engine.run(created.id)
    expect(await textOf(parts.blobs, done!.outputs!.copy!.key)).toBe('la la la')
    await engine.delete(created.id)
    expect(await keys(parts.blobs)).toEqual([])
  })

  test('of an application named like a folder of another is refused, because it would lie there', async () => {
    const { engine, parts } = testEngine(echo)
    const inputs = { inputUrl: localFile(song) }
    await expect(engine.submit({ ...job, app: 'me/studio', inputs })).rejects.toMatchObject({
      code: 'INVALID_PARAMS',
      message:
        'engine.submit: app: must have 1 to 128 letters, digits and "._-", and not only dots. Encode ids of another ' +
        "form: Buffer.from(id).toString('base64url').",
    })
    expect(await keys(parts.blobs, ['uploads/me/'])).toEqual([])
    expect(await engine.count({})).toBe(0)
  })

  test('that is missing, is a folder or is too large creates no job and leaves no file', async () => {
    const { engine, parts } = testEngine(echo, { limits: { maxFileBytes: 4 } })
    const submit = (path: string) => engine.submit({ ...job, inputs: { inputUrl: localFile(path) } })
    await expect(submit(join(folder, 'other.mp3'))).rejects.toMatchObject({
      code: 'INVALID_PARAMS',
      message: expect.stringContaining('other.mp3 cannot be read (ENOENT)'),
    })
    await expect(submit(folder)).rejects.toThrow('is not a file')
    await expect(submit(song)).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'too_large' })
    expect(await engine.count({})).toBe(0)
    expect(await keys(parts.blobs)).toEqual([])
  })

  test('is removed again if the job is not created', async () => {
    const { engine, parts } = testEngine(echo, { limits: { maxQueuedJobs: 1 } })
    const inputs = { inputUrl: localFile(song) }
    const first = await engine.submit({ ...job, inputs, idempotencyKey: 'k' })
    await expect(engine.submit({ ...job, inputs })).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    expect(await engine.submit({ ...job, inputs, idempotencyKey: 'k' })).toMatchObject({
      job: { id: first.job.id },
      created: false,
    })
    expect(await keys(parts.blobs)).toEqual([first.job.uploads.inputUrl])
  })

  test('is refused for a param that is not an input, and beside an address of the same name', async () => {
    const { engine } = testEngine(echo)
    const file = localFile(song)
    await expect(engine.submit({ ...job, params: { inputUrl: file } })).rejects.toThrow(
      'params.inputUrl: localFile(path) goes into inputs',
    )
    await expect(engine.submit({ ...job, inputs: { other: file } })).rejects.toThrow(
      'inputs.other: is not an input of test/echo; it has inputUrl',
    )
    await expect(
      engine.submit({ ...job, params: { inputUrl: 'https://example.org/' }, inputs: { inputUrl: file } }),
    ).rejects.toThrow('inputs.inputUrl: is given in params or uploads, too')
  })
})

describe('only code of the host can name a local file:', () => {
  test('not what a host passes on from JSON', async () => {
    const { engine } = testEngine(echo)
    const forged = [song, pathToFileURL(song).href, { path: song }, { ...localFile(song), path: song }]
    for (const value of forged) {
      const inputs = { inputUrl: JSON.parse(JSON.stringify(value)) as never }
      await expect(engine.submit({ ...job, inputs })).rejects.toThrow('must be localFile(path)')
    }
    for (const inputUrl of [song, pathToFileURL(song).href])
      await expect(engine.submit({ ...job, params: { inputUrl } })).rejects.toMatchObject({ code: 'INVALID_PARAMS' })
  })

  test('not a client over HTTP, in whatever field', async () => {
    const service = await startService()
    const url = pathToFileURL(song).href
    const workflow = 'service/stems-vocals-accompaniment'
    const bodies = [
      { workflow, params: { inputUrl: song } },
      { workflow, params: {}, inputs: { inputUrl: { path: song } } },
      { workflow, params: {}, inputs: { inputUrl: song } },
      { workflow, params: { inputUrl: 'https://example.org/' }, inputs: { inputUrl: { path: song } } },
      { workflow, params: { inputUrl: 'https://example.org/' }, uploads: { inputUrl: `../../${song}` } },
      // The light workflow of this service accepts any URL; fetching a file: URL is refused.
      { workflow, params: { inputUrl: url } },
    ]
    for (const body of bodies) {
      const answer = await service.api('/job', { method: 'POST', body: JSON.stringify(body) })
      const created = (await answer.json()) as { id?: string }
      if (answer.status !== 200) {
        expect(answer.status).toBe(400)
        continue
      }
      const ended = await service.engine.run(created.id)
      expect(ended).toMatchObject({ status: 'FAILED', error: { code: 'BAD_INPUT' }, uploads: {} })
    }
    expect(await keys(service.engine.blobs)).toEqual([])
    await service.close()
  })
})
