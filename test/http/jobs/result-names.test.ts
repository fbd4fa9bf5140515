import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { createClient } from '../../../src/client/client.js'
import { attachment } from '../../../src/core/engine/job/attachment.js'
import { downloadName, nameInUrl } from '../../../src/core/engine/job/download-name.js'
import { downloadName as nameOfResult } from '../../../src/http/storage/download-name.js'
import { separated, type Service, serviceOfTest, type ServiceSettings } from '../harness.js'
import { temporaryFolder } from '../../temporary-folder.js'

const song = '夜に"駆ける\r\nX: 1" 100%'
let files: Server
const folder = temporaryFolder()
beforeAll(async () => {
  files = createServer((_, response) => response.end('the song')).listen(0, '127.0.0.1')
  await once(files, 'listening')
})
afterAll(async () => {
  files.close()
})

function songUrl(name = song): string {
  return `http://127.0.0.1:${(files.address() as AddressInfo).port}/songs/${encodeURIComponent(name)}?token=secret`
}

function fetching(settings: ServiceSettings = {}): Promise<Service> {
  return serviceOfTest({ ...settings, engine: { fetch: { allowPrivate: true }, ...settings.engine } })
}

const safeName = '夜に 駆ける__X 1 100% - vocals.wav'

describe('results in a folder', () => {
  test('are the files that the workflow wrote, and are offered by the name that it gave them', async () => {
    const directory = join(folder, 'blobs')
    const engine = { scratchDirectory: folder, fetch: { allowPrivate: true } }
    const service = await fetching({ blobs: fsBlobs({ directory }), engine })
    const { result, details } = await separated(service, songUrl())
    const link = new URL(result?.vocals ?? '')
    expect(link.pathname).toMatch(/\/vocals\.wav$/)
    const answer = await fetch(link)
    expect(await answer.text()).toBe('the song')
    expect(answer.headers.get('content-disposition')).toBe(
      `attachment; filename="__ _____X 1 100_ - vocals.wav"; filename*=UTF-8''${encodeURIComponent(safeName)}`,
    )
    const key = link.pathname.slice(link.pathname.indexOf('results/'))
    expect((await stat(join(directory, key))).ino).toBe((details as { inode: number }).inode)

    // The signature covers the name.
    link.searchParams.set('name', 'other.exe')
    expect((await fetch(link)).status).toBe(403)
    link.searchParams.delete('name')
    expect((await fetch(link)).status).toBe(403)

    const unnamed = await fetch(result?.accompaniments ?? '')
    expect(unnamed.headers.get('content-disposition')).toBe('attachment; filename="accompaniments.wav"')
    await unnamed.body?.cancel()

    const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
    const download = await client.download(result?.vocals ?? '')
    expect(download.fileName).toBe(safeName)
    await download.stream.cancel()
  })
})

test('a store that serves clients itself gets the name', async () => {
  const asked: string[] = []
  const blobs = {
    ...memoryBlobs(),
    signGet: async (key: string, { fileName }: { fileName: string }) => {
      asked.push(fileName)
      return `https://bucket.example/${key}`
    },
    signPut: async (key: string) => `https://bucket.example/${key}`,
  }
  const service = await fetching({ blobs, http: { directStorage: true } })
  await separated(service, songUrl())
  expect(asked).toEqual(expect.arrayContaining([safeName, 'accompaniments.wav']))
})

test('an upload never has a name that a result could have', async () => {
  const service = await fetching()
  const { result } = await separated(service, await service.uploaded(Buffer.from('uploaded')))
  const answer = await fetch(result?.vocals ?? '')
  expect(answer.headers.get('content-disposition')).toBe('attachment; filename="vocals.wav"')
  await answer.body?.cancel()
})

describe('names', () => {
  test.each([
    ['plain.wav', 'attachment; filename="plain.wav"'],
    ['a "b" \\ c.wav', `attachment; filename="a _b_ _ c.wav"; filename*=UTF-8''a%20%22b%22%20%5C%20c.wav`],
    ["it's (1)*.wav", `attachment; filename="it's (1)*.wav"`],
    ["é's.wav", `attachment; filename="_'s.wav"; filename*=UTF-8''%C3%A9%27s.wav`],
    ['half\ud83d.wav', 'attachment; filename="half_.wav"'],
    ['a\r\nb', `attachment; filename="a__b"; filename*=UTF-8''a%0D%0Ab`],
  ])('%j is %s in the header', (name, header) => {
    expect(attachment(name)).toBe(header)
    expect(() => new Headers({ 'content-disposition': header })).not.toThrow()
  })

  test.each([
    ['https://a.example/x/My%20Song.mp3?y=1', 'My Song.mp3'],
    ['https://a.example/x/a%2Fb%00.mp3', 'a_b_.mp3'],
    ['https://a.example/%ff.mp3', '%ff.mp3'],
    ['https://a.example/', undefined],
    ['nonsense', undefined],
  ])('of %s: %s', (url, name) => {
    expect(nameInUrl(url)).toBe(name)
  })

  test('of a job whose name ends with half of a character: its links work', async () => {
    const service = await fetching()
    const { name, result, files: named } = await separated(service, songUrl(), { name: 'Song \ud83c' })
    expect([name, named?.vocals?.fileName]).toEqual(['Song \ufffd', 'Song \ufffd - vocals.wav'])
    expect((await fetch(result?.vocals ?? '')).status).toBe(200)
    expect(nameOfResult({ name: 'Song \ud83c' }, { fileName: 'vocals.wav' })).toBe('Song - vocals.wav')
  })

  test.each([
    ['CON', '_CON - vocals.wav'],
    ['nul.live', '_nul.live - vocals.wav'],
    ['a:b?', 'a b - vocals.wav'],
    [null, '_aux.wav', 'aux.wav'],
    [null, 'a b.wav', 'a:b.wav.'],
    [null, '_LPT1.take.wav', '.LPT1.take.wav'],
  ])('of results are such as Windows accepts: the job %j, %j', (name, expected, named?: string) => {
    expect(nameOfResult({ name }, { fileName: 'vocals.wav', downloadName: named })).toBe(expected)
  })

  test.each(['日本語の歌'.repeat(20), '🎵'.repeat(400)])('are short enough for file systems: %s', (name) => {
    const fileName = nameOfResult({ name }, { fileName: 'accompaniments.flac' })
    expect(Buffer.byteLength(fileName)).toBeLessThanOrEqual(255)
    expect(fileName).toMatch(/^([日本語の歌]+|(🎵)+) - accompaniments\.flac$/)
  })

  test('are at most 255 characters long, all of them whole', () => {
    expect(Array.from(downloadName('🎵'.repeat(400)))).toHaveLength(255)
  })
})
