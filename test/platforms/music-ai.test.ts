import { existsSync, readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, expect } from 'vitest'
import { canMakeCertificates, selfSigned } from '../http/mounts/self-signed.js'
import { root } from '../package/tarball.js'
import { freePort } from '../servers/found-server.js'
import { installsFromRegistry, project, removeProjects, run, serve } from './project.js'

// Another vendor's client for the same interface, from npm. `test/http/mounts/existing-clients.test.ts` sends the same
// requests without it.
afterAll(removeProjects)

const program = `
import MusicAi from '@music.ai/sdk'

const client = new MusicAi({ apiKey: 'a-key-of-your-own', apiEndpoint: process.argv[2], jobMonitorInterval: 200 })
const inputUrl = await client.uploadFile('song.mp3')
const id = await client.addJob({ name: 'song', workflow: 'service/stems-vocals-accompaniment', params: { inputUrl } })
const job = await client.waitForJobCompletion(id)
const { result } = await client.downloadJobResults(job, process.argv[3])
const [listed] = await client.listJobs({ status: ['SUCCEEDED'] })
await client.deleteJob(id)
console.log(JSON.stringify({ status: job.status, result, listed: listed.id === id }))
`

installsFromRegistry('@music.ai/sdk works unchanged; as documented, it downloads results by https alone', async () => {
  const place = project('music-ai', { 'client.mjs': program })
  await run('npm install stemwork onnxruntime-node', place)
  await run('npm install @music.ai/sdk@1.0.21', place)
  await run(`cp ${join(root, 'test/fixtures/audio/stereo.mp3')} song.mp3`, place)
  const start = async (options = '') => {
    const port = await freePort()
    const mount = `http://127.0.0.1:${port}/v1`
    await serve(
      `npx stemwork serve --port ${port} --api-keys a-key-of-your-own ${options}`,
      place,
      `${mount}/healthz`,
      {},
    )
    return { port, mount }
  }
  const answer = async (endpoint: string, folder: string) =>
    JSON.parse(
      await run(`node --no-warnings client.mjs ${endpoint} ${folder}`, place, { NODE_TLS_REJECT_UNAUTHORIZED: '0' }),
    ) as {
      status: string
      result: Record<string, string>
    }
  const plain = await answer((await start()).mount, 'plain')
  expect(plain).toMatchObject({
    status: 'SUCCEEDED',
    result: { vocals: expect.stringMatching(/^http:/) },
    listed: true,
  })
  expect(existsSync(join(place, 'plain/vocals.wav'))).toBe(false)

  if (!canMakeCertificates()) return
  let port = 0
  const proxy = createServer(selfSigned(), (request, response) => {
    const options = { port, host: '127.0.0.1', method: request.method, path: request.url, headers: request.headers }
    request.pipe(
      httpRequest(options, (upstream) => {
        response.writeHead(upstream.statusCode ?? 502, upstream.rawHeaders)
        upstream.pipe(response)
      }),
    )
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const secure = `https://127.0.0.1:${(proxy.address() as AddressInfo).port}/v1`
  ;({ port } = await start(`--public-url ${secure}`))
  expect(await answer(secure, 'secure')).toMatchObject({ status: 'SUCCEEDED', result: { vocals: './vocals.wav' } })
  expect(readFileSync(join(place, 'secure/vocals.wav')).toString('latin1', 0, 4)).toBe('RIFF')
  proxy.closeAllConnections()
  proxy.close()
})
