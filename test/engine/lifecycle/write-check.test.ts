import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import { s3Blobs } from '../../../src/adapters/blobs/s3/index.js'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { blobCheck } from '../../../src/core/engine/lifecycle/write-check.js'
import { createHandler } from '../../../src/http/index.js'
import { s3ClientOf } from '../../servers/s3-client.js'
import { startS3Server } from '../../servers/s3-server.js'
import { recordingLogger, testEngine, textWorkflow } from '../harness.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const place = folderOfEachTest()

test('a service whose blob folder cannot be written is alive, not ready; what it wrote to check is gone', async () => {
  const directory = join(place, 'blobs')
  const { engine } = testEngine(textWorkflow(), {}, { blobs: fsBlobs({ directory }) })
  expect(await engine.health()).toMatchObject({ ok: true, problems: [] })
  const files = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  expect(files).toEqual([])
  await engine.close()

  // A file in place of the folder: unlike permissions, it keeps even root from writing.
  await rm(directory, { recursive: true })
  await writeFile(directory, '')
  const { logger, lines } = recordingLogger()
  const broken = testEngine(textWorkflow(), { logger }, { blobs: fsBlobs({ directory }) })
  const handler = createHandler(broken.engine)
  const answer = async (path: string) => {
    const response = await handler(new Request(`http://service${path}`))
    return { status: response.status, body: await response.json() }
  }
  const ready = await answer('/readyz')
  expect(ready).toMatchObject({
    status: 503,
    body: { ok: false, problems: [expect.stringMatching(/^Files cannot be stored/)] },
  })
  // The answer is public, so paths are only logged.
  expect(JSON.stringify(ready.body)).not.toContain(place)
  expect(lines.map(({ level }) => level)).toContain('warn')
  expect(await answer('/healthz')).toEqual({ status: 200, body: { ok: true } })
  await broken.engine.close()
})

test('a service whose bucket refuses writes is not ready; checks follow after 10 s, or 60 s if well', async () => {
  const server = await startS3Server()
  const client = s3ClientOf(server)
  try {
    let now = 0
    const check = blobCheck({ blobs: s3Blobs({ client, bucket: 'test' }), clock: () => now })
    const writes = () => server.requests.filter(({ method }) => method === 'PUT').length
    await Promise.all([check(), check()])
    for (now of [1, 59_999]) await check()
    expect(writes()).toBe(1)
    expect(server.requests.map(({ method }) => method)).toContain('DELETE')

    server.fault = ({ method }) => (method === 'PUT' ? 'access denied' : undefined)
    for (now of [60_000, 69_999]) await expect(check()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(writes()).toBe(2)
    server.fault = undefined
    now = 70_000
    await check()
    expect(writes()).toBe(3)

    server.fault = ({ method }) => (method === 'PUT' ? 'access denied' : undefined)
    const { engine } = testEngine(textWorkflow(), {}, { blobs: s3Blobs({ client, bucket: 'test' }) })
    expect(await engine.health()).toMatchObject({
      ok: false,
      problems: [expect.stringMatching(/^Files cannot be stored/)],
    })
    await engine.close()
  } finally {
    client.destroy()
    await server.close()
  }
})

test('a store that never answers is reported as a problem after a time limit', async () => {
  // Without a server: every adapter has its own time limits for a silent one.
  const blobs = { ...memoryBlobs(), put: () => new Promise<never>(() => {}) }
  await expect(blobCheck({ blobs, timeoutMs: 20 })()).rejects.toMatchObject({ name: 'TimeoutError' })
})
