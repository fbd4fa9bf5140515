import { mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { noise, writeWav } from '../separation/tracks.js'
import { command, startService, type Stemwork } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

// Each test starts the service several times.
vi.setConfig({ testTimeout: 120_000 })

const key = 'a key of the operator 1234'
const workflow = 'service/stems-vocals-accompaniment'
const folder = temporaryFolder()
let songs: Record<Seconds, Buffer>
const running: Stemwork[] = []
/** Length of a song: one can be interrupted while it runs, the other is for tests in which length is irrelevant. */
type Seconds = 24 | 6

beforeAll(async () => {
  const ofSeconds = async (seconds: Seconds) => {
    const path = join(folder, `${seconds}.wav`)
    await writeWav(path, [noise(seconds * 44_100, 1), noise(seconds * 44_100, 2)], 44_100, '16')
    return readFile(path)
  }
  songs = { 24: await ofSeconds(24), 6: await ofSeconds(6) }
})
afterAll(async () => {
  for (const process of running) process.kill('SIGKILL')
  await Promise.all(running.map((process) => process.finished()))
})

async function start(...args: string[]) {
  const service = await startService(args)
  running.push(service.process)
  return service
}

interface Job {
  id: string
  status: string
  result: Record<string, string>
}

async function ask<Answer = unknown>(baseUrl: string, apiKey: string, path: string, body?: unknown) {
  const init = body === undefined ? undefined : { method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(baseUrl + path, {
    ...init,
    headers: { authorization: apiKey, 'content-type': 'application/json' },
  })
  return { status: response.status, body: (await response.json()) as Answer }
}

async function submit(baseUrl: string, apiKey: string, seconds: Seconds): Promise<string> {
  const { uploadUrl, downloadUrl } = (await ask<{ uploadUrl: string; downloadUrl: string }>(baseUrl, apiKey, '/upload'))
    .body
  expect((await fetch(uploadUrl, { method: 'PUT', body: new Uint8Array(songs[seconds]) })).status).toBe(200)
  const created = await ask<Job>(baseUrl, apiKey, '/job', { name: 'song', workflow, params: { inputUrl: downloadUrl } })
  expect(created.status, JSON.stringify(created.body)).toBe(200)
  return created.body.id
}

/** Polls until the job has the status; fails if it ends with another one. */
async function reach(baseUrl: string, apiKey: string, id: string, status: string) {
  for (;;) {
    const { body: job } = await ask<Job>(baseUrl, apiKey, `/job/${id}`)
    if (job.status === status) return job
    expect(['QUEUED', 'STARTED'], JSON.stringify(job)).toContain(job.status)
    await delay(200)
  }
}

async function filesUnder(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

describe('stemwork serve', () => {
  it('prints one line when it is ready, makes a key, and answers under /v1 and /api', async () => {
    const { process, baseUrl } = await start()
    expect(process.stdout).toMatch(/^stemwork listening on http:\/\/127\.0\.0\.1:\d+\/v1\n$/)
    const [, made] = await process.printed('stderr', /API key, shown only this once: (stw_\S+)\n/)
    const application = await ask(baseUrl, made!, '/application')
    expect(application).toMatchObject({
      status: 200,
      body: { id: expect.stringMatching(/^[0-9a-f-]{36}$/), name: 'default' },
    })
    expect(await ask(baseUrl.replace(/\/v1$/, '/api'), made!, '/application')).toEqual(application)
    expect((await ask(baseUrl, 'another key entirely', '/application')).status).toBe(401)

    process.kill('SIGTERM')
    const { status, stdout } = await process.finished()
    expect({ status, lines: stdout.split('\n').length }).toEqual({ status: 0, lines: 2 })
  })

  it('trusts a proxy, allows other origins, serves metrics and logs JSON, each only if told to', async () => {
    const options = ['--trust-proxy', '--metrics', '--cors', 'https://app.example.org', '--log-format', 'json']
    const { process, baseUrl } = await start('--api-keys', key, ...options)
    const headers = { authorization: key, 'x-forwarded-proto': 'https', 'x-forwarded-host': 'stems.example.org' }
    const upload = await fetch(`${baseUrl}/upload`, { headers: { ...headers, origin: 'https://app.example.org' } })
    expect(await upload.json()).toMatchObject({
      uploadUrl: expect.stringMatching(/^https:\/\/stems\.example\.org\/v1\//),
    })
    expect(upload.headers.get('access-control-allow-origin')).toBe('https://app.example.org')
    expect(await (await fetch(new URL('/metrics', baseUrl))).text()).toMatch(/^# HELP stemwork_pool_slots /m)
    const [logged] = await process.printed('stderr', /^\{.*The workflow is ready.*$/m)
    expect(JSON.parse(logged)).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      level: 'info',
      message: 'The workflow is ready.',
      workflow,
      runtime: expect.any(String),
    })
    process.kill('SIGTERM')
    await process.finished()

    const plain = await start('--api-keys', key)
    const direct = await fetch(`${plain.baseUrl}/upload`, {
      headers: { ...headers, origin: 'https://app.example.org' },
    })
    expect(await direct.json()).toMatchObject({ uploadUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:/) })
    expect(direct.headers.get('access-control-allow-origin')).toBeNull()
    expect((await fetch(new URL('/metrics', plain.baseUrl))).status).toBe(404)
    plain.process.kill('SIGTERM')
    await plain.process.finished()
  })

  it('refuses an invalid origin, and a format of the log that there is not', async () => {
    const { status, stderr } = await command(['serve', '--port', '0', '--cors', 'https://app.example.org/page'])
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining('--cors must be * or like') })
    const xml = await command(['serve', '--port', '0', '--log-format', 'xml'])
    expect(xml.stderr).toContain('--log-format must be one of text, json, not "xml"')
  })

  it('stores keys only as hashes, and its secret readable only for its owner', async () => {
    const data = join(folder, 'keys')
    const first = await start('--data', data)
    const [, made] = await first.process.printed('stderr', /shown only this once: (\S+)\n/)
    const application = await ask(first.baseUrl, made!, '/application')
    first.process.kill('SIGTERM')
    await first.process.finished()
    for (const file of await filesUnder(data)) expect((await readFile(file)).includes(made!), file).toBe(false)
    expect((await stat(join(data, 'link-secret'))).mode & 0o777).toBe(0o600)
    expect((await stat(join(data, 'scratch'))).mode & 0o777).toBe(0o700)

    const second = await start('--data', data, '--api-keys', key)
    expect(await ask(second.baseUrl, made!, '/application')).toEqual(application)
    expect(await ask(second.baseUrl, key, '/application')).toEqual(application)
    expect(second.process.stderr).not.toContain('shown only this once')
    second.process.kill('SIGTERM')
    await second.process.finished()

    const third = await start('--data', data)
    expect((await ask(third.baseUrl, made!, '/application')).status).toBe(200)
    expect((await ask(third.baseUrl, key, '/application')).status, 'a key taken out of the command line').toBe(401)
    third.process.kill('SIGTERM')
    await third.process.finished()
  })

  it('accepts links of a secret that is being replaced, until it is left out', async () => {
    const [old, next] = ['o'.repeat(32), 'n'.repeat(32)]
    /** A new ticket, and the answer to an upload with an earlier one. */
    const visit = async (secrets: string, earlier?: URL) => {
      const options = ['--data', join(folder, 'secrets'), '--api-keys', key]
      const service = await startService(options, { STEMWORK_LINK_SECRET: secrets })
      running.push(service.process)
      const path = earlier && earlier.pathname + earlier.search
      const sent = path && (await fetch(new URL(path, service.baseUrl), { method: 'PUT', body: 'text' }))
      const { uploadUrl } = (await ask<{ uploadUrl: string }>(service.baseUrl, key, '/upload')).body
      service.process.kill('SIGTERM')
      await service.process.finished()
      return { ticket: new URL(uploadUrl), status: sent && sent.status }
    }
    const { ticket: first } = await visit(old)
    const { ticket: second, status } = await visit(`${next}, ${old}`, first)
    expect(status).toBe(200)
    const { ticket: third, status: signedWithNext } = await visit(next, second)
    expect(signedWithNext).toBe(200)
    expect((await visit(old, third)).status).toBe(403)
  })

  it('keeps files without --data in a folder for its user alone; a start removes those of a killed one', async () => {
    const temporary = join(folder, 'temporary')
    await mkdir(temporary)
    const folders = async () => (await readdir(temporary)).filter((name) => name.startsWith('stemwork-serve'))
    const first = await startService([], { TMPDIR: temporary })
    running.push(first.process)
    const [before] = await folders()
    expect((await stat(join(temporary, before!))).mode & 0o777).toBe(0o700)
    first.process.kill('SIGKILL')
    await first.process.finished()
    expect(await folders()).toEqual([before])

    const second = await startService([], { TMPDIR: temporary })
    running.push(second.process)
    const after = await folders()
    expect(after).toHaveLength(1)
    expect(after).not.toContain(before)
    second.process.kill('SIGTERM')
    await second.process.finished()
    expect(await folders()).toEqual([])
  })

  describe('with options and variables', () => {
    const keys = ['first-key-of-theirs-1234', 'second-key-of-theirs-5678']
    let data: string
    let service: Awaited<ReturnType<typeof startService>>
    beforeAll(async () => {
      data = join(folder, 'taken')
      const publicUrl = ['--public-url', 'https://stems.example.org/']
      const options = ['--data', data, ...publicUrl, '--aliases', `other/stems=${workflow}`, '--allow-private-inputs']
      service = await startService(options, {
        STEMWORK_API_KEYS: keys.join(','),
        STEMWORK_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
      })
      running.push(service.process)
    })
    afterAll(() => {
      service.process.kill('SIGTERM')
      return service.process.finished()
    })

    it('takes keys and the webhook secret from the environment', async () => {
      const webhook = { url: 'https://hooks.example.org/stems' }
      const job = { name: 'song', workflow, params: { inputUrl: 'https://songs.example.org/a.wav' }, webhook }
      for (const each of keys) expect((await ask(service.baseUrl, each, '/application')).status).toBe(200)
      expect(service.process.stderr).not.toContain('shown only this once')
      expect((await ask(service.baseUrl, keys[0]!, '/job', job)).status).toBe(200)
    })

    it('bases links on --public-url, which may lack the path, and takes further ids from --aliases', async () => {
      const { workflows } = (await ask<{ workflows: unknown[] }>(service.baseUrl, keys[0]!, '/workflow')).body
      expect(workflows).toContainEqual(expect.objectContaining({ id: 'other/stems', aliasOf: workflow }))
      const { body } = await ask<{ uploadUrl: string }>(service.baseUrl, keys[0]!, '/upload')
      expect(body.uploadUrl).toMatch(/^https:\/\/stems\.example\.org\/v1\/storage\//)
    })

    it('does not tell the operator to start or repair the server of an input', async () => {
      const job = { workflow, params: { inputUrl: 'http://127.0.0.1:1/nothing-listens.wav' } }
      expect((await ask(service.baseUrl, keys[1]!, '/job', job)).status).toBe(200)
      const [line] = await service.process.printed('stderr', /^.*Attempt 1 of 3 failed; the job is queued again\..*$/m)
      expect(line).toMatch(/queued again\. \{"jobId":.*"cause":"StemworkError .*download_failed.*ECONNREFUSED/)
    })

    it('says what is wrong when the port or the data folder is taken', async () => {
      const samePort = await command(['serve', '--port', new URL(service.baseUrl).port])
      expect(samePort).toMatchObject({
        status: 1,
        stdout: '',
        stderr: expect.stringMatching(/Port \d+ of 127\.0\.0\.1 is in use\..*--port/),
      })
      const sameData = await command(['serve', '--port', '0', '--data', data])
      expect(sameData).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(/^stemwork: .*process/) })
    })
  })

  // The next two tests run concurrently: both wait for a lease of 10 s to expire.
  it.concurrent(
    'finishes queued and running jobs exactly once after a kill -9 and a restart',
    // The context's own `expect`: the global one cannot tell which of two tests it is in.
    async ({ expect }) => {
      const data = join(folder, 'killed')
      const first = await start('--data', data, '--api-keys', key)
      const lengths = [24, 6, 6] as const
      const ids: string[] = []
      for (const seconds of lengths) ids.push(await submit(first.baseUrl, key, seconds))
      await reach(first.baseUrl, key, ids[0]!, 'STARTED')
      first.process.kill('SIGKILL')
      await first.process.finished()
      expect(first.process.stderr).not.toContain('job succeeded')

      const second = await start('--data', data, '--api-keys', key)
      for (const [index, id] of ids.entries()) {
        const job = await reach(second.baseUrl, key, id, 'SUCCEEDED')
        const response = await fetch(job.result.vocals!)
        expect(response.status).toBe(200)
        expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(lengths[index]! * 44_100 * 4)
      }
      const results = (await filesUnder(join(data, 'blobs', 'results'))).filter((file) => file.endsWith('.wav'))
      expect(results).toHaveLength(2 * ids.length)
      // Only the folder of the running process: that of the killed one is gone.
      expect(await readdir(join(data, 'scratch'))).toHaveLength(1)
      await expect.poll(() => filesUnder(join(data, 'scratch'))).toEqual([])

      // Links created before a restart still work after it.
      const { result } = await reach(second.baseUrl, key, ids[0]!, 'SUCCEEDED')
      second.process.kill('SIGTERM')
      // Clients see SUCCEEDED before a job's files are removed and its line is logged: counted at the end.
      const { stderr } = await second.process.finished()
      for (const id of ids) expect(stderr.split(`job succeeded {"jobId":"${id}"`)).toHaveLength(2)
      expect(stderr).toContain(`job started {"jobId":"${ids[0]}","attempt":1,"lapses":1,"workflow":"service/`)
      for (const id of ids.slice(1))
        expect(stderr.split(`job started {"jobId":"${id}","attempt":1,"workflow":"`)).toHaveLength(2)
      const third = await start('--data', data, '--api-keys', key)
      const moved = Object.assign(new URL(result.vocals!), { port: new URL(third.baseUrl).port })
      expect((await fetch(moved, { method: 'HEAD' })).status).toBe(200)
      third.process.kill('SIGTERM')
      await third.process.finished()
    },
    180_000,
  )

  it.concurrent('stops at once at the second Ctrl-C, and the next start finishes the job', async ({ expect }) => {
    const data = join(folder, 'interrupted')
    const first = await start('--data', data, '--api-keys', key)
    const id = await submit(first.baseUrl, key, 24)
    await reach(first.baseUrl, key, id, 'STARTED')
    first.process.kill('SIGINT')
    await first.process.printed('stderr', /Stopping/)
    first.process.kill('SIGINT')
    expect((await first.process.finished()).status).toBe(130)

    const second = await start('--data', data, '--api-keys', key)
    await reach(second.baseUrl, key, id, 'SUCCEEDED')
    second.process.kill('SIGTERM')
    expect((await second.process.finished()).status).toBe(0)
  })
})
