import { execFileSync, spawnSync } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { zipBytes, type ZipEntry, zipStream } from '../../../src/http/storage/zip.js'
import { separated, type Service, startService } from '../harness.js'
import { temporaryFolder } from '../../temporary-folder.js'

const hasUnzip = spawnSync('unzip', ['-v']).status === 0

let service: Service
const folder = temporaryFolder()
beforeAll(async () => {
  service = await startService()
})
afterAll(async () => {
  await service.close()
})

async function archived(name: string, bytes: Uint8Array, batchName?: string): Promise<string> {
  const { id, status } = await separated(service, bytes, { name, batchName })
  expect(status).toBe('SUCCEEDED')
  return id
}

async function link(query: string): Promise<{ url: string; fileName: string; bytes: number; jobs: number }> {
  return (await (await service.api(`/archive?${query}`)).json()) as Awaited<ReturnType<typeof link>>
}

async function unpacked(name: string, archive: Uint8Array): Promise<Record<string, Buffer>> {
  const path = join(folder, `${name}.zip`)
  await writeFile(path, archive)
  execFileSync('unzip', ['-q', '-o', path, '-d', join(folder, name)], { env: { ...process.env, LC_ALL: 'C.UTF-8' } })
  const files = await readdir(join(folder, name), { recursive: true, withFileTypes: true })
  const contents: Record<string, Buffer> = {}
  for (const file of files.filter((one) => one.isFile())) {
    const whole = join(file.parentPath, file.name)
    contents[whole.slice(join(folder, name).length + 1)] = await readFile(whole)
  }
  return contents
}

describe.skipIf(!hasUnzip)('an archive of results (needs unzip)', () => {
  test('of one job has its files under real names, and the length that was announced', async () => {
    const bytes = Buffer.alloc(200_000, 'one song ')
    const { url, fileName, bytes: announced } = await link(`job=${await archived('Älter / "Lied".mp3', bytes)}`)
    expect(fileName).toBe('Älter Lied - stems.zip')
    const answer = await fetch(url)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/zip'])
    expect(answer.headers.get('content-disposition')).toContain(
      `filename*=UTF-8''${encodeURIComponent('Älter Lied - stems.zip')}`,
    )
    const archive = Buffer.from(await answer.arrayBuffer())
    expect([archive.byteLength, answer.headers.get('content-length')]).toEqual([announced, String(announced)])
    const files = await unpacked('one', archive)
    expect(Object.keys(files).sort()).toEqual(['Älter Lied - accompaniments.wav', 'Älter Lied - vocals.wav'])
    for (const file of Object.values(files)) expect(file.equals(bytes)).toBe(true)
  })

  test('of a batch has a folder for each song, even if two have the same name', async () => {
    const songs = [Buffer.from('first'), Buffer.alloc(0xffff * 2), Buffer.from('third')]
    for (const bytes of songs) await archived('Same', bytes, 'Night run')
    const { url, fileName, jobs } = await link('batchName=Night+run')
    expect([fileName, jobs]).toEqual(['Night run - stems.zip', 3])
    const files = await unpacked('batch', Buffer.from(await (await fetch(url)).arrayBuffer()))
    expect(
      Object.keys(files)
        .filter((name) => name.endsWith('vocals.wav'))
        .sort(),
    ).toEqual(['Same (2)/Same - vocals.wav', 'Same (3)/Same - vocals.wav', 'Same/Same - vocals.wav'])
    expect(
      Object.values(files)
        .map(({ byteLength }) => byteLength)
        .sort((a, b) => a - b),
    ).toEqual([5, 5, 5, 5, 0xffff * 2, 0xffff * 2])
  })

  test('has a folder for each of two songs whose names are one for macOS', async () => {
    // Composed, decomposed, and upper case.
    for (const name of ['Caf\u00e9', 'Cafe\u0301', 'CAF\u00c9']) await archived(name, Buffer.from(name), 'Cafes')
    const { url } = await link('batchName=Cafes')
    const files = await unpacked('cafes', Buffer.from(await (await fetch(url)).arrayBuffer()))
    const folders = Object.keys(files).map((name) => name.split('/')[0]!.normalize('NFC').toLowerCase())
    expect([...new Set(folders)].sort()).toEqual(['café', 'café (2)', 'café (3)'])
  })

  test('has folders that tell files of the same name apart by their endings', async () => {
    for (const name of ['x.wav', 'x.flac', 'solo.mp3']) await archived(name, Buffer.from(name), 'Endings')
    const { url } = await link('batchName=Endings')
    const files = await unpacked('endings', Buffer.from(await (await fetch(url)).arrayBuffer()))
    const folders = Object.entries(files).map(([name, bytes]) => [name.split('/')[0], bytes.toString()])
    expect(Object.fromEntries(folders)).toEqual({ 'x.wav': 'x.wav', 'x.flac': 'x.flac', solo: 'solo.mp3' })
  })

  test('has no folder that is a device on Windows', async () => {
    for (const name of ['con', 'Aux.wav', 'a:b.']) await archived(name, Buffer.from(name), 'NUL')
    const { url, fileName } = await link('batchName=NUL')
    expect(fileName).toBe('_NUL - stems.zip')
    const files = await unpacked('devices', Buffer.from(await (await fetch(url)).arrayBuffer()))
    const folders = Object.keys(files).map((name) => name.split('/')[0] ?? '')
    expect(new Set(folders)).toEqual(new Set(['_Aux', '_con', 'a b']))
  })

  test('can be read as a stream, by a program that has not seen its end', async () => {
    const entries = [entry('a.wav', Buffer.alloc(70_000, 'a')), entry('empty.wav', Buffer.alloc(0))]
    const archive = await collected(entries)
    expect(archive.byteLength).toBe(zipBytes(entries))
    expect(execFileSync('funzip', { input: archive }).equals(Buffer.alloc(70_000, 'a'))).toBe(true)
    expect(Object.keys(await unpacked('streamed', archive)).sort()).toEqual(['a.wav', 'empty.wav'])
  })
})

describe('an archive', () => {
  test('is not found for another application, and its link does not work for other jobs', async () => {
    const [mine, other] = [await archived('Mine', Buffer.from('1')), await archived('Other', Buffer.from('2'))]
    const { key } = await service.addApplication('Stranger')
    expect((await service.api(`/archive?job=${mine}`, { key })).status).toBe(404)
    const { url } = await link(`job=${mine}`)
    expect((await fetch(url.replace(mine, other))).status).toBe(403)
    expect((await fetch(`${url}&job=${other}`)).status).toBe(403)
    await service.api(`/job/${mine}`, { method: 'DELETE' })
    expect((await fetch(url)).status).toBe(410)
  })

  test.each(['', 'job=x', 'job=00000000-0000-4000-8000-000000000000&batchName=a'])(
    'is refused for the query "%s"',
    async (query) => {
      expect((await service.api(`/archive?${query}`)).status).toBe(400)
    },
  )

  test('is refused before its first byte if a file of it was lost', async () => {
    const [kept, lost] = [await archived('kept', Buffer.from('kept')), await archived('lost', Buffer.from('lost'))]
    const { url } = await link(`job=${kept}&job=${lost}`)
    const file = (await service.engine.get(lost))?.outputs?.vocals?.key ?? ''
    await service.engine.blobs.delete(file)
    const answer = await fetch(url)
    expect([answer.status, await answer.text()]).toEqual([
      404,
      expect.stringContaining('no longer in the storage of the service'),
    ])
  })

  test('looks for the files of several jobs at a time', async () => {
    const ids = [await archived('one', Buffer.from('one')), await archived('two', Buffer.from('two'))]
    const { url } = await link(ids.map((id) => `job=${id}`).join('&'))
    const { blobs } = service.engine
    const { stat } = blobs
    let asked = 0
    let haveAllAsked = () => {}
    const allAsked = new Promise<void>((resolve) => (haveAllAsked = resolve))
    blobs.stat = async (...words) => {
      if (++asked === 4) haveAllAsked()
      await allAsked
      return await stat.apply(blobs, words)
    }
    try {
      expect((await fetch(url)).status).toBe(200)
    } finally {
      blobs.stat = stat
    }
  })

  test('of more than 4 GiB has the fields of ZIP64, which its announced length includes', () => {
    const long = { ...entry('a.wav', Buffer.alloc(0)), bytes: 5e9 }
    const [blocks, local, descriptor, central, end] = [Math.ceil(5e9 / 0xffff), 30 + 20, 24, 46 + 28, 56 + 20 + 22]
    const afterLong = 30 + 16 + (46 + 28) + 5
    const announced = local + 5e9 + 5 * blocks + descriptor + central + end + 2 * 'a.wav'.length
    expect(zipBytes([long])).toBe(announced)
    expect(zipBytes([long, entry('b', Buffer.alloc(0))])).toBe(announced + afterLong + 2 * 'b'.length)
  })

  test('breaks off, rather than look whole, when a file is shorter than announced', async () => {
    const short = { ...entry('a.wav', Buffer.from('short')), bytes: 10 }
    await expect(collected([short])).rejects.toThrow('"a.wav" has 5 bytes, not the 10 announced.')
  })
})

function entry(name: string, data: Buffer): ZipEntry {
  return {
    name,
    bytes: data.byteLength,
    modifiedAt: new Date('2025-01-31T12:00:00Z'),
    async open() {
      return (async function* () {
        for (let at = 0; at < data.byteLength; at += 50_000) yield data.subarray(at, at + 50_000)
      })()
    },
  }
}

async function collected(entries: readonly ZipEntry[]): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of zipStream(entries)) chunks.push(chunk)
  return Buffer.concat(chunks)
}
