import { execFileSync } from 'node:child_process'
import { open, rename, writeFile } from 'node:fs/promises'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { createClient } from '../../../src/client/client.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { defineWorkflow } from '../../../src/core/engine/workflow/workflow.js'
import { answerGrowing } from '../../../src/http/jobs/growing-result.js'
import { LoopTurns } from '../../../src/http/routing/loop-turns.js'
import { gate } from '../../engine/harness.js'
import { pollJob, type Service, serviceOfTest, type ServiceSettings } from '../harness.js'

/**
 * A workflow whose result grows when the test says so; the first byte is corrected at the end, like the lengths in a
 * header.
 */
function growingWorkflow() {
  let tell: ((text: string | undefined) => void) | undefined
  let written = () => {}
  const orders: (string | undefined)[] = []
  const next = () =>
    orders.length > 0 ? Promise.resolve(orders.shift()) : new Promise<string | undefined>((resolve) => (tell = resolve))
  const workflow = defineWorkflow({
    id: 'service/growing',
    name: 'Growing',
    description: 'Grows.',
    params: z.object({}),
    inputs: [],
    outputs: { song: { fileName: 'song.wav', contentType: 'audio/wav' } },
    stages: [
      {
        name: 'grow',
        async run({ outputPath, signal, progress }) {
          const path = outputPath('song')
          const file = await open(`${path}.part`, 'w')
          let share = 0
          try {
            await writeFile(`${path}.part.peaks`, 'head of the peaks')
            for (let text = await next(); text !== undefined; text = await next()) {
              signal.throwIfAborted()
              await file.write(text)
              progress((share += 0.1))
              written()
            }
            await file.write('!', 0)
          } finally {
            await file.close()
          }
          await rename(`${path}.part`, path)
        },
      },
    ],
  })
  const order = (text: string | undefined) => {
    const take = tell
    tell = undefined
    if (take) take(text)
    else orders.push(text)
  }
  return {
    workflow,
    /** Resolves once the text is in the file. */
    write: (text: string) => new Promise<void>((resolve) => ((written = resolve), order(text))),
    end: () => order(undefined),
  }
}

async function started(settings: ServiceSettings = {}) {
  const growing = growingWorkflow()
  const service = await serviceOfTest({ ...settings, workflows: [growing.workflow] })
  const id = await service.created({ workflow: 'service/growing' })
  const ask = (range?: string, key?: string) =>
    service.api(`/job/${id}/growing/song`, { redirect: 'manual', key, headers: range ? { range } : {} })
  return { service, growing, id, ask }
}

const result = async (service: Service, id: string) => (await fetch((await pollJob(service, id)).result!.song!)).text()

const stores: [string, () => Promise<BlobStore>][] = [
  ['memory', async () => memoryBlobs()],
  [
    'a folder, into which results are moved',
    async () => {
      const directory = await mkdtemp(join(tmpdir(), 'stemwork-growing-'))
      onTestFinished(() => rm(directory, { recursive: true }))
      return fsBlobs({ directory })
    },
  ],
]

it('is sent in ranges that take the slots and turns of downloads', async () => {
  const { growing, ask } = await started({ http: { limits: { downloads: 1 } } })
  await growing.write('x'.repeat(20_000_000))
  const next = vi.spyOn(LoopTurns.prototype, 'next')
  const first = await ask('bytes=0-')
  const second = await ask('bytes=0-')
  expect([first.status, second.status]).toEqual([206, 429])
  expect(await second.json()).toMatchObject({ code: 'RATE_LIMITED' })
  const followed = await ask()
  expect(followed.status).toBe(200)
  await followed.body?.cancel()
  const before = next.mock.calls.length
  expect(before).toBeGreaterThan(0)
  const { length } = await first.text()
  expect(length).toBe(20_000_000)
  // Each chunk takes a turn.
  expect(next.mock.calls.length - before).toBeGreaterThan(50)
  await expect.poll(async () => (await ask('bytes=0-9')).status).toBe(206)
  next.mockRestore()
  growing.end()
})

describe.each(stores)('a result that grows, with files in %s', (_name, open) => {
  it('is read as it grows, and equals the result of the ended job except for its header', async () => {
    const { service, growing, id } = await started({ blobs: await open() })
    const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
    await growing.write('?first ')
    const download = await client.growing(id, 'song')
    expect([download.contentType, download.fileName]).toEqual(['audio/wav', 'song.wav'])
    const reader = download.stream.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const readUntil = async (end: string) => {
      while (!text.endsWith(end)) text += (await reader.read()).value ?? ''
    }
    await readUntil('?first ')
    expect((await client.getJob(id)).status).toBe('STARTED')
    await growing.write('second ')
    await readUntil('second ')
    await growing.write('third')
    growing.end()
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) text += chunk.value
    expect(text).toBe('?first second third')
    expect(await result(service, id)).toBe('!first second third')
    const whole = await client.growing(id, 'song')
    expect(await (await whole.blob()).text()).toBe('!first second third')
  })
})

describe('a result that grows', () => {
  it('has peaks for drawing it as it grows, if the workflow keeps them', async () => {
    const { service, growing, id } = await started()
    const { baseUrl, apiKey } = { baseUrl: service.base, apiKey: service.app.key }
    const client = createClient({ baseUrl, apiKey })
    await growing.write('0123456789')
    const all = await client.growingPeaks(id, 'song')
    expect([all.contentType, all.fileName]).toEqual(['application/octet-stream', 'song.dat'])
    expect(await (await all.blob()).text()).toBe('head of the peaks')
    const plain = await service.api(`/job/${id}/growing/song/peaks`)
    expect([plain.status, plain.headers.get('content-range'), await plain.text()]).toEqual([
      200,
      null,
      'head of the peaks',
    ])
    const rest = await client.growingPeaks(id, 'song', { range: { start: 12 } })
    expect(await (await rest.blob()).text()).toBe('peaks')
    growing.end()
    await result(service, id)
    // Peaks of an ended job have another address.
    expect((await service.api(`/job/${id}/growing/song/peaks`)).status).toBe(404)
  })

  it('answers ranges of what exists', async () => {
    const { growing, ask } = await started()
    await growing.write('0123456789')
    const part = await ask('bytes=3-5')
    expect([part.status, part.headers.get('content-range'), await part.text()]).toEqual([206, 'bytes 3-5/*', '345'])
    const rest = await ask('bytes=8-')
    expect([rest.status, rest.headers.get('content-range'), await rest.text()]).toEqual([206, 'bytes 8-9/*', '89'])
    const later = await ask('bytes=10-')
    expect([later.status, later.headers.get('retry-after')]).toEqual([416, '1'])
    await growing.write('abc')
    expect(await (await ask('bytes=10-')).text()).toBe('abc')
    growing.end()
  })

  it('is announced in the event stream each time that there is more to read', async () => {
    const { service, growing, id } = await started()
    const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
    let read = ''
    const events: number[] = []
    let news = gate()
    const ended = client.waitForJob(id, {
      onGrowing({ song }) {
        events.push(song!.bytes)
        expect(song!.url).toBe(`${service.base}/job/${id}/growing/song`)
        news.open()
      },
    })
    for (const text of ['segment 1', ', segment 2', ', segment 3']) {
      await growing.write(text)
      await news.opened
      news = gate()
      const part = await client.growing(id, 'song', { range: { start: read.length, end: events.at(-1)! - 1 } })
      read += await (await part.blob()).text()
    }
    growing.end()
    expect((await ended).status).toBe('SUCCEEDED')
    expect([read, events]).toEqual(['segment 1, segment 2, segment 3', [9, 20, 31]])
    expect((await result(service, id)).slice(1)).toBe(read.slice(1))
  })

  it('leads to the result once the job has succeeded; does not exist for others, or before it runs', async () => {
    const { service, growing, id, ask } = await started()
    const { key } = await service.addApplication('Other')
    await growing.write('x')
    expect((await ask('bytes=0-', key)).status).toBe(404)
    const unknown = await service.api(`/job/${id}/growing/drums`)
    expect(unknown.status).toBe(404)
    growing.end()
    const { result } = await pollJob(service, id)
    const moved = await ask()
    expect([moved.status, new URL(moved.headers.get('location')!).pathname]).toEqual([
      307,
      new URL(result!.song!).pathname,
    ])
    const waiting = await started({ worker: false })
    const early = await waiting.ask()
    expect([early.status, early.headers.get('retry-after')]).toEqual([404, '1'])
  })

  it('says so if the job runs on another machine', async () => {
    const shared = { jobs: memoryJobs(), applications: memoryApplications() }
    const blobs = memoryBlobs()
    const { service, growing, id } = await started({ stores: shared, blobs })
    const api = await serviceOfTest({ stores: shared, blobs, worker: false, workflows: [growingWorkflow().workflow] })
    await growing.write('half')
    const { key } = service.app
    const other = await api.api(`/job/${id}/growing/song`, { key })
    expect([other.status, other.headers.get('retry-after'), await other.json()]).toMatchObject([
      404,
      '15',
      { reason: 'elsewhere', message: expect.stringContaining('another machine') },
    ])
    growing.end()
    await pollJob(service, id)
    expect((await api.api(`/job/${id}/growing/song`, { key, redirect: 'manual' })).status).toBe(307)
  })

  it('breaks off for its readers when the job is canceled', async () => {
    const { service, growing, id, ask } = await started()
    await growing.write('half')
    const reading = (await ask()).text()
    await service.api(`/job/${id}/cancel`, { method: 'POST' })
    void growing.write('more')
    await expect(reading).rejects.toThrow('terminated')
    expect((await ask()).headers.get('retry-after')).toBeNull()
  })
})

// Windows has no pipes of this kind.
it.skipIf(process.platform === 'win32')('is no pipe, whose other end may never be opened', async () => {
  const [made, ended] = [gate<string>(), gate()]
  const workflow = defineWorkflow({
    id: 'service/pipe',
    name: 'Pipe',
    description: 'Makes a pipe where its result grows, as an archive may.',
    params: z.object({}),
    inputs: [],
    outputs: { song: { fileName: 'song.wav', contentType: 'audio/wav' } },
    stages: [
      {
        name: 'pipe',
        async run({ outputPath }) {
          execFileSync('mkfifo', [`${outputPath('song')}.part`])
          made.open(outputPath('song'))
          await ended.opened
        },
      },
    ],
  })
  const service = await serviceOfTest({ workflows: [workflow] })
  const id = await service.created({ workflow: 'service/pipe' })
  const path = await made.opened
  const asked = service.api(`/job/${id}/growing/song`)
  // Releases a reader of the pipe, so that no thread stays blocked if this test fails.
  let isOpened = false
  const opener = setTimeout(() => {
    isOpened = true
    void open(`${path}.part`, 'r+').then((file) => file.close())
  }, 10_000)
  expect([(await asked).status, isOpened]).toEqual([404, false])
  clearTimeout(opener)
  ended.open()
})

it('is followed by a link to the job until the link is revoked', async () => {
  const { service, growing, id } = await started({ http: { console: true, limits: { heartbeatMs: 20 } } })
  const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
  await growing.write('?first ')
  const link = await client.createJobLink(id)
  const key = `job-link ${new URL(link.url).hash.slice('#job='.length)}`
  const checks = vi.spyOn(service.engine.links, 'isOpen')
  const answer = await service.api(`/job/${id}/growing/song`, { key })
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader.read()).value).toBe('?first ')
  await expect.poll(() => checks.mock.calls.length).toBeGreaterThan(3)
  await growing.write('second ')
  expect((await reader.read()).value).toBe('second ')
  await client.revokeJobLink(id, link.id)
  await expect(reader.read()).rejects.toThrow(TypeError)
  growing.end()
})

it('closes the file for a client that disconnects while it is being opened', async () => {
  const close = vi.fn(async () => {})
  const result = { bytes: 4, contentType: 'audio/wav', fileName: 'song.wav', part: async function* () {}, close }
  const call = {
    caller: { id: 'app' },
    request: { method: 'GET', headers: new Headers({ range: 'bytes=0-3' }), signal: AbortSignal.abort() },
    service: {
      engine: { growingResult: async () => result },
      options: { limits: { idleMs: 1000 } },
      turns: new LoopTurns(),
      downloads: { take: () => ({}) },
    },
  }
  await answerGrowing(
    call as unknown as Parameters<typeof answerGrowing>[0],
    { status: 'STARTED' } as Parameters<typeof answerGrowing>[1],
    'song',
  )
  expect(close).toHaveBeenCalled()
})
