import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { separate } from '../../src/core/workflows/separation/separate.js'
import { chromiumPath, openBrowser, optimizingLittle } from '../console/browser.js'
import { freePort } from '../servers/found-server.js'
import { noise, sine, writeWav } from '../separation/tracks.js'
import { type StaticHost, startHost } from './static-host.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

const decodedByBrowser = 'stereo.mp3 no-xing.mp3 mono.mp3 stereo.m4a fragmented.m4a stereo.opus vorbis.ogg'.split(' ')

/** Functions of the package in the page, and the parts of their results used here. */
interface Device {
  separate(file: unknown, options?: object): Promise<Separated>
}
interface Separated {
  stems: Record<string, Blob>
  seconds: number
  warnings: string[]
  remove(): Promise<void>
}
interface Input {
  files: Iterable<unknown>
}

/** Settings of a separation in the page, besides its file. */
interface Settings {
  /** Cancels at the first progress. */
  cancels?: boolean
  /** Cancels before the separation can have begun. */
  cancelsAtOnce?: boolean
}

/** Globals of a page that a test uses. */
interface PageScope {
  device: Device
  navigator: { storage: { getDirectory(): Promise<PageFolder> } }
  File: new (content: string[], name: string) => unknown
}
interface PageFolder {
  keys(): AsyncIterable<string>
  getDirectoryHandle(name: string, options: { create: true }): Promise<PageFolder>
  getFileHandle(
    name: string,
    options: { create: true },
  ): Promise<{
    createWritable(): Promise<{ write(text: string): Promise<void>; close(): Promise<void> }>
    getFile(): Promise<Blob>
  }>
}

/** The outcome: files in Base64, or an error. */
interface Ended {
  stems?: Record<string, string>
  warnings?: string[]
  error?: { name: string; code?: string; reason?: string; message: string }
}

describe.skipIf(!chromiumPath)('stemwork/browser (needs Chromium; CHROMIUM_PATH names one that is elsewhere)', () => {
  let host: StaticHost
  let browser: Browser
  const folder = temporaryFolder()
  /** Messages that the pages wrote to their consoles. */
  const complaints: string[] = []
  const path = (name: string) => join(folder, name)

  beforeAll(async () => {
    const rate = 44_100
    await writeWav(path('song.wav'), [sine(8 * rate, 440, rate, 0.4), noise(8 * rate)], rate, '16')
    // Several segments long, so that the first progress is not the last.
    await writeWav(path('long.wav'), [sine(40 * rate, 440, rate, 0.4), noise(40 * rate)], rate, '16')
    ;[host, browser] = await Promise.all([startHost(), openBrowser(optimizingLittle)])
  })
  afterAll(async () => {
    await browser?.close()
    await host?.close()
  })

  async function openPage(context?: BrowserContext): Promise<Page> {
    const page = await (context ?? (await browser.newContext())).newPage()
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(String(error)))
    await page.goto(host.base)
    await page.waitForFunction('globalThis.device')
    return page
  }

  /** Separates the file in the page. */
  async function separateIn(page: Page, file: string, settings: Settings = {}): Promise<Ended> {
    await page.setInputFiles('input', file)
    return await page.locator('input').evaluate(async (input, { cancels, cancelsAtOnce }): Promise<Ended> => {
      const { device } = globalThis as unknown as { device: Device }
      const [chosen] = (input as unknown as Input).files
      const controller = new AbortController()
      const assets = { worker: '/stemwork/dist/browser/worker.js' }
      const onProgress = () => cancels && controller.abort()
      try {
        const separating = device.separate(chosen, { assets, onProgress, signal: controller.signal })
        if (cancelsAtOnce) controller.abort()
        const separated = await separating
        const stems: Record<string, string> = {}
        for (const [stem, content] of Object.entries(separated.stems)) {
          const bytes = new Uint8Array(await content.arrayBuffer())
          let text = ''
          for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
          stems[stem] = btoa(text)
        }
        await separated.remove()
        return { stems, warnings: separated.warnings }
      } catch (error) {
        const { name, code, reason, message } = error as NonNullable<Ended['error']>
        return { error: { name, code, reason, message } }
      }
    }, settings)
  }

  /** The files that remain in the browser's private file system. */
  function filesLeft(page: Page): Promise<string[]> {
    return page.evaluate(async () => {
      const { storage } = (globalThis as unknown as { navigator: { storage: { getDirectory(): Promise<Folder> } } })
        .navigator
      interface Folder extends AsyncIterable<[string, Partial<Folder>]> {
        kind: string
      }
      const found: string[] = []
      const visit = async (folder: Folder) => {
        for await (const [name, entry] of folder) {
          found.push(name)
          if (entry.kind === 'directory') await visit(entry as Folder)
        }
      }
      await visit(await storage.getDirectory())
      return found
    })
  }

  /** The same stems separated by the server, with WebAssembly. */
  async function serverStems(file: string): Promise<Record<string, Buffer>> {
    const outputs = { vocals: path('vocals.wav'), accompaniments: path('accompaniments.wav') }
    await separate(file, { outputs, runtime: 'wasm', threads: 1 })
    return { vocals: await readFile(outputs.vocals), accompaniments: await readFile(outputs.accompaniments) }
  }

  test('gives the same bytes as the server and loads at most 7 MB', async () => {
    const page = await openPage()
    const { stems } = await separateIn(page, path('song.wav'))
    for (const [stem, expected] of Object.entries(await serverStems(path('song.wav'))))
      expect(Buffer.from(stems?.[stem] ?? '', 'base64').equals(expected), stem).toBe(true)
    const loaded = [...host.sent].reduce((sum, [, bytes]) => sum + bytes, 0)
    expect(loaded).toBeGreaterThan(2e6)
    expect(loaded).toBeLessThanOrEqual(7e6)
    expect(complaints).toEqual([])
    expect(await filesLeft(page)).toEqual(['stemwork'])
  })

  let decoding: Promise<Page> | undefined
  for (const name of decodedByBrowser) {
    test(`lets the browser decode ${name}, with the same length and sound as on the server`, async () => {
      const file = fileURLToPath(new URL(`../fixtures/audio/${name}`, import.meta.url))
      decoding ??= openPage()
      const { stems, warnings, error } = await separateIn(await decoding, file)
      expect(error).toBeUndefined()
      expect(warnings).toEqual([])
      const expected = Object.values(await serverStems(file)).map(samplesOf)
      const found = ['vocals', 'accompaniments'].map((stem) => samplesOf(Buffer.from(stems?.[stem] ?? '', 'base64')))
      // The decoders' outputs differ by at most two 16-bit steps, and so do the stems.
      expect(found.map((samples) => samples.length)).toEqual(expected.map((samples) => samples.length))
      const sum = ([vocals, accompaniments]: Float32Array[]) => vocals!.map((value, i) => value + accompaniments![i]!)
      expect(mostSteps(sum(expected), sum(found))).toBeLessThanOrEqual(2)
      for (const [i, samples] of found.entries()) expect(mostSteps(expected[i]!, samples)).toBeLessThanOrEqual(2)
    })
  }

  test('refuses a broken file with the same message as the server, and leaves nothing', async () => {
    await writeFile(path('broken.mp3'), Buffer.alloc(50_000, 'not audio, '))
    const page = await openPage()
    const { error } = await separateIn(page, path('broken.mp3'))
    expect(error).toMatchObject({ code: 'BAD_INPUT', reason: 'unsupported_format' })
    expect(await filesLeft(page)).toEqual(['stemwork'])
  })

  test('says what to use instead of a format that only the server decodes', async () => {
    const file = fileURLToPath(new URL('../fixtures/audio/stereo.wma', import.meta.url))
    const { error } = await separateIn(await openPage(), file)
    expect(error).toMatchObject({ code: 'BAD_INPUT', message: expect.stringContaining('Take its sound as WAV') })
  })

  test('stops when it is canceled, and leaves nothing', async () => {
    const page = await openPage()
    const { error } = await separateIn(page, path('long.wav'), { cancels: true })
    expect(error).toMatchObject({ name: 'AbortError' })
    expect(await filesLeft(page)).toEqual(['stemwork'])
  })

  test('reports no progress once it is canceled, although the worker takes a while to stop', async () => {
    const page = await openPage()
    const progress = "postMessage({ kind: 'progress', progress: { progress: 0.1 } })"
    const end = "if (data.kind === 'cancel') postMessage({ kind: 'canceled' })"
    const body = `onmessage = ({ data }) => { ${progress}; ${end} }`
    await page.route('**/slow-worker.js', (route) => route.fulfill({ contentType: 'text/javascript', body }))
    const outcome = await page.evaluate(async () => {
      const { device, File } = globalThis as unknown as PageScope
      const controller = new AbortController()
      let reports = 0
      const onProgress = () => {
        reports++
        controller.abort('enough')
      }
      const options = { assets: { worker: '/slow-worker.js' }, onProgress, signal: controller.signal }
      return await device.separate(new File(['song'], 'song.wav'), options).catch((error) => ({ error, reports }))
    })
    expect(outcome).toEqual({ error: 'enough', reports: 1 })
  })

  test('stops when it is canceled at once', async () => {
    const page = await openPage()
    const { error } = await separateIn(page, path('song.wav'), { cancelsAtOnce: true })
    expect(error).toMatchObject({ name: 'AbortError' })
    expect(await filesLeft(page)).toEqual(['stemwork'])
  })

  test('that fails leaves a chosen folder as it was, with the files of an earlier time', async () => {
    const page = await openPage()
    const left = await page.evaluate(async () => {
      const { device, navigator, File } = globalThis as unknown as PageScope
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('music', { create: true })
      const earlier = await folder.getFileHandle('song - vocals.wav', { create: true })
      const stream = await earlier.createWritable()
      await stream.write('earlier')
      await stream.close()
      const song = new File(['not audio'], 'song.mp3')
      const assets = { worker: '/stemwork/dist/browser/worker.js' }
      const { code } = (await device.separate(song, { folder, assets }).catch((error: { code: string }) => error)) as {
        code: string
      }
      const names: string[] = []
      for await (const name of folder.keys()) names.push(name)
      return { code, names, text: await (await earlier.getFile()).text() }
    })
    expect(left).toEqual({ code: 'BAD_INPUT', names: ['song - vocals.wav'], text: 'earlier' })
  })

  test('removes what a closed tab left at the next separation', async () => {
    const context = await browser.newContext()
    const closed = await openPage(context)
    void separateIn(closed, path('long.wav')).catch(() => undefined)
    const page = await openPage(context)
    await expect.poll(() => filesLeft(page)).toHaveLength(4)
    await closed.close()
    const other = await separateIn(page, fileURLToPath(new URL('../fixtures/audio/stereo.mp3', import.meta.url)))
    expect(other.error).toBeUndefined()
    expect(await filesLeft(page)).toEqual(['stemwork'])
  })

  test('serves the page of the examples', async () => {
    const program = fileURLToPath(new URL('../../examples/browser/server.mjs', import.meta.url))
    const server = spawn(process.execPath, [program], { env: { ...process.env, PORT: String(await freePort()) } })
    try {
      const [address] = (await once(server.stdout, 'data')) as [Buffer]
      const page = await (await browser.newContext()).newPage()
      page.on('pageerror', (error) => complaints.push(String(error)))
      await page.goto(String(address).trim())
      await page.setInputFiles('input', path('song.wav'))
      await page.getByRole('link', { name: 'song - vocals.wav' }).waitFor({ timeout: 120_000 })
      expect(complaints).toEqual([])
    } finally {
      server.kill()
    }
  })

  test.each(['worker.js', 'ort-wasm-simd-threaded.wasm', 'pffft.wasm'])(
    'names the policy and the addresses if %s cannot be loaded',
    async (name) => {
      const bare = await startHost([`/stemwork/dist/browser/${name}`])
      try {
        const page = await (await browser.newContext()).newPage()
        await page.goto(bare.base)
        await page.waitForFunction('globalThis.device')
        const { error } = await separateIn(page, path('song.wav'))
        expect(error).toMatchObject({
          code: 'MISSING_DEPENDENCY',
          message: expect.stringContaining("worker-src 'self'"),
        })
      } finally {
        await bare.close()
      }
    },
  )
})

/** The samples of a 16-bit WAV file. */
function samplesOf(wav: Buffer): Float32Array {
  return Float32Array.from({ length: (wav.length - 44) / 2 }, (_, i) => wav.readInt16LE(44 + 2 * i))
}

function mostSteps(expected: Float32Array, found: Float32Array): number {
  return expected.reduce((most, value, i) => Math.max(most, Math.abs(value - found[i]!)), 0)
}
