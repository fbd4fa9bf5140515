import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { freePort } from '../servers/found-server.js'
import { wavFile } from '../separation/wav-file.js'

// Each example is a separate program that separates a song.
vi.setConfig({ testTimeout: 180_000 })

const root = fileURLToPath(new URL('../../', import.meta.url))
const example = (name: string) => join(root, 'examples', name)
const running: ChildProcess[] = []

afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode !== null) continue
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
})

async function startProgram(name: string): Promise<{ line: string; problems: string }> {
  const child = spawn(process.execPath, [example(name)], {
    env: { ...process.env, PORT: String(await freePort()) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  let problems = ''
  child.stderr.on('data', (data: Buffer) => (problems += data))
  const [line] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [Buffer | number]
  return { line: String(line), problems }
}

async function startExample(name: string): Promise<{ url: string; key: string }> {
  const { line, problems } = await startProgram(name)
  const found = /(http:\/\/\S+) with API key (\S+)/.exec(line)
  if (!found) throw new Error(`${name} did not start: ${line} ${problems}`)
  return { url: found[1]!, key: found[2]! }
}

/** A second of a tone as a 16-bit mono WAV file. */
function toneWav(): Buffer {
  const samples = Int16Array.from({ length: 44_100 }, (_, index) =>
    Math.round(16_384 * Math.sin((2 * Math.PI * 441 * index) / 44_100)),
  )
  return wavFile({ tag: 1, bits: 16, channels: 1, data: Buffer.from(samples.buffer) })
}

describe('the server examples', () => {
  for (const name of ['express.mjs', 'koa.mjs', 'fastify.mjs', 'hono.mjs', 'node-http.mjs']) {
    test(`${name} takes an upload and a job`, async () => {
      const { url, key } = await startExample(name)
      const headers = { authorization: key }
      const ticket = (await (await fetch(`${url}/upload`, { headers })).json()) as {
        uploadUrl: string
        downloadUrl: string
      }
      const song = toneWav()
      expect((await fetch(ticket.uploadUrl, { method: 'PUT', body: song })).status).toBe(200)
      const stored = Buffer.from(await (await fetch(ticket.downloadUrl)).arrayBuffer())
      expect(createHash('sha256').update(stored).digest('hex')).toBe(createHash('sha256').update(song).digest('hex'))
      const created = await fetch(`${url}/job`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({
          name,
          workflow: 'service/stems-vocals-accompaniment',
          params: { inputUrl: ticket.downloadUrl },
        }),
      })
      expect(created.status).toBe(200)
      const { id } = (await created.json()) as { id: string }
      expect(
        await (await fetch(`${url}/job/${id}`, { headers: { ...headers, prefer: 'wait=60' } })).json(),
      ).toMatchObject({
        id,
        name,
        status: 'SUCCEEDED',
        result: {
          vocals: expect.stringMatching(/\/vocals\.wav\?/),
          accompaniments: expect.stringMatching(/\/accompaniments\.wav\?/),
        },
      })
    })
  }

  // Express 5 passes the error to the callback of listen(), where it is easily taken for success.
  test('the server of the page that separates goes on after a request for no address', async () => {
    const { line } = await startProgram('browser/server.mjs')
    const { host, port, origin } = new URL(line)
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(`GET // HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    })
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 404/)
    expect(await (await fetch(`${origin}/?a=b`)).text()).toContain('<!doctype html>')
  })

  test('express.mjs fails when its port is taken', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const { status, stdout, stderr } = spawnSync(process.execPath, [example('express.mjs')], {
      encoding: 'utf8',
      env: { ...process.env, PORT: String(port) },
    })
    server.close()
    expect(stderr).toContain('EADDRINUSE')
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  })

  test('next-route.mjs gives links of its public address, whatever the proxy tells Next.js', () => {
    const script = `
      const { GET } = await import(${JSON.stringify(`file://${example('next-route.mjs')}`)})
      const answer = await GET(new Request('http://localhost:3000/api/media/upload'))
      const { uploadUrl, downloadUrl } = await answer.json()
      console.log(new URL(uploadUrl).origin, downloadUrl.startsWith('https://media.example.org/api/media/storage/'))
      process.exit()`
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, PUBLIC_URL: 'https://media.example.org/api/media' },
    })
    expect(stdout.trim(), stderr).toBe('https://media.example.org true')
  })

  test('next-route.mjs answers every method of the service', () => {
    const route = JSON.stringify(`file://${example('next-route.mjs')}`)
    const script = `console.log(Object.keys(await import(${route})).sort().join())`
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, NEXT_PHASE: 'phase-production-build' },
    })
    expect(stdout.trim(), stderr).toBe('DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT,runtime')
  })

  test('next-route.mjs takes an upload and a job as plain requests', () => {
    const script = `
      import { readFile } from 'node:fs/promises'
      const { GET, POST, PUT } = await import(${JSON.stringify(`file://${example('next-route.mjs')}`)})
      const json = async (answer) => (await answer).json()
      const base = 'http://localhost/api/media'
      const { uploadUrl, downloadUrl } = await json(GET(new Request(base + '/upload')))
      const song = await readFile(${JSON.stringify(join(root, 'test/fixtures/audio/stereo.mp3'))})
      const { bytes } = await json(PUT(new Request(uploadUrl, { method: 'PUT', body: song })))
      const body = JSON.stringify({ workflow: 'service/stems-vocals-accompaniment', params: { inputUrl: downloadUrl } })
      const headers = { 'content-type': 'application/json' }
      const { id } = await json(POST(new Request(base + '/job', { method: 'POST', body, headers })))
      const { status } = await json(GET(new Request(base + '/job/' + id, { headers: { prefer: 'wait=60' } })))
      console.log(bytes === song.length, status)
      process.exit()`
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: root,
      encoding: 'utf8',
    })
    expect(stdout.trim(), stderr).toBe('true SUCCEEDED')
  })
})

describe('the other examples', () => {
  test('custom-workflow.mjs measures a tone of -9 dB', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-example-'))
    const path = join(folder, 'tone.wav')
    writeFileSync(path, toneWav())
    const { stdout, stderr } = spawnSync(process.execPath, [example('custom-workflow.mjs'), path], { encoding: 'utf8' })
    await rm(folder, { recursive: true })
    expect(JSON.parse(stdout || '{}'), stderr).toEqual({ rmsDecibels: -9.03 })
  })

  test('audio.mjs measures a song and writes it at another loudness, and the start of it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-example-'))
    writeFileSync(join(folder, 'tone.wav'), toneWav())
    const args = [example('audio.mjs'), 'tone.wav']
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: folder })
    const made = ['loud.flac', 'teaser.wav'].map((name) => readFileSync(join(folder, name)).toString('latin1', 0, 4))
    await rm(folder, { recursive: true })
    expect(stdout, stderr).toMatch(/integratedLufs: -9\./)
    expect(made).toEqual(['fLaC', 'RIFF'])
  })

  test('composed-workflow.mjs separates, measures and encodes in one job', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-example-'))
    writeFileSync(join(folder, 'tone.wav'), toneWav())
    const args = [example('composed-workflow.mjs'), 'tone.wav']
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: folder })
    await rm(folder, { recursive: true })
    expect(stdout, stderr).toMatch(/vocals\.flac: \d+ bytes', *\s*'vocalsLoudness\.json: .*restLoudness\.json/s)
    // Both channels of the stem contain the tone, of which the input has one.
    expect(stdout).toMatch(/integratedLufs: -6\.7[^]*nothing failed/)
  })

  test('the README shows the Express example as it is', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    const code = readFileSync(example('express.mjs'), 'utf8').replace(/^\/\/.*\n/, '')
    expect(readme).toContain(code)
  })

  test('the page of examples links every example', () => {
    const page = readFileSync(join(root, 'docs/examples.md'), 'utf8')
    for (const name of [
      'express',
      'koa',
      'fastify',
      'hono',
      'node-http',
      'next-route',
      'audio',
      'composed-workflow',
      'custom-workflow',
      'stores/jobs',
      'worker',
    ]) {
      expect(page).toContain(`(../examples/${name}.mjs)`)
    }
    expect(page).toContain('(../examples/distributed/compose.yaml)')
  })
})
