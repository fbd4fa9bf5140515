import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Service, startService } from '../http/harness.js'
import { temporaryFolder } from '../temporary-folder.js'

// Another vendor's official clients, unchanged but for their address: docs/from-music-ai.md. Over http, their
// `downloadJobResults` downloads nothing; `test/platforms/music-ai.test.ts` calls it over https.

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const python = path('../../clients/python/.venv/bin/python')
const hasPythonClient =
  existsSync(python) && spawnSync(python, ['-c', 'import musicai_sdk'], { stdio: 'ignore' }).status === 0
const workflow = 'music-ai/stems-vocals-accompaniment'

/** The methods used here. */
interface MusicAiClient {
  uploadFile(path: string): Promise<string>
  addJob(job: object): Promise<string>
  waitForJobCompletion(id: string): Promise<{ result: unknown }>
  downloadFile(url: string, path: string): Promise<void>
  listJobs(filters: object): Promise<unknown>
  listWorkflows(): Promise<unknown>
  getApplicationInfo(): Promise<unknown>
  deleteJob(id: string): Promise<unknown>
  getJob(id: string): Promise<unknown>
}

let service: Service
const folder = temporaryFolder()
let song: string
beforeAll(async () => {
  service = await startService({ engine: { aliases: { [workflow]: 'service/stems-vocals-accompaniment' } } })
  song = join(folder, 'song.mp3')
  await writeFile(song, 'a song')
})
afterAll(async () => {
  await service.close()
})

// Installed by `npm install --prefix test/clients`, which `.ci/run` does.
const sdk = '@music.ai/sdk'
it.skipIf(!existsSync(path(`node_modules/${sdk}`)))(
  'a program written with @music.ai/sdk only has to change its address (skipped without it)',
  async () => {
    const { default: MusicAi } = (await import(sdk)) as { default: new (options: object) => MusicAiClient }
    const client = new MusicAi({ apiKey: service.app.key, apiEndpoint: service.base, jobMonitorInterval: 20 })
    const inputUrl = await client.uploadFile(song)
    const id = await client.addJob({ name: 'song', workflow, params: { inputUrl }, metadata: { album: 'first' } })
    const job = await client.waitForJobCompletion(id)
    expect(job).toMatchObject({ id, status: 'SUCCEEDED', metadata: { album: 'first' }, workflow: { id: workflow } })
    const { vocals } = job.result as { vocals: string }
    await client.downloadFile(vocals, join(folder, 'js', 'vocals.wav'))
    expect(await readFile(join(folder, 'js', 'vocals.wav'), 'utf8')).toBe('a song')
    expect(await client.listJobs({ workflow: [workflow], status: ['SUCCEEDED'] })).toMatchObject([{ id }])
    expect(await client.listWorkflows()).toMatchObject({ workflows: expect.arrayContaining([{ ...listed }]) })
    expect(await client.getApplicationInfo()).toEqual({ id: service.app.id, name: 'Test application' })
    expect(await client.deleteJob(id)).toEqual({ id })
    await expect(client.getJob(id)).rejects.toThrow('There is no job')
    await expect(client.addJob({ name: 'song', workflow: 'music-ai/none', params: {} })).rejects.toThrow(
      'There is no workflow "music-ai/none". Known workflows: ',
    )
  },
)

const listed = {
  id: workflow,
  name: 'Vocals and accompaniment',
  description: expect.any(String) as string,
  aliasOf: 'service/stems-vocals-accompaniment',
}

// Installed by `.ci/run`: test/clients/requirements.txt.
it.skipIf(!hasPythonClient)(
  'a program written with musicai_sdk only has to change its address (skipped without the Python package)',
  async () => {
    const args = [path('use_musicai.py'), service.base, service.app.key, song, folder]
    const { stdout } = await promisify(execFile)(python, args, {
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    })
    expect(JSON.parse(stdout)).toEqual({
      job: ['SUCCEEDED', workflow, { album: 'first' }],
      vocals: 'a song',
      listed: true,
      workflows: ['service/stems-vocals-accompaniment', 'service/held', workflow],
      application: 'Test application',
      deleted: true,
      refused: expect.stringContaining('There is no workflow \\"music-ai/none\\"'),
    })
  },
)
