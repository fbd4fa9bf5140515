import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { separate } from '../../src/core/workflows/separation/separate.js'
import { chromiumPath, openBrowser } from '../console/browser.js'
import { noise, sine, writeWav } from '../separation/tracks.js'
import { type StaticHost, startHost } from './static-host.js'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

/** What the page has of the package, and of what it returns here. */
interface Device {
  separate(file: unknown, options?: object): Promise<{ stems: Record<string, Blob>; seconds: number }>
}
interface Input {
  files: Iterable<unknown>
}

describe.skipIf(!chromiumPath)('stemwork/browser (needs Chromium; CHROMIUM_PATH names one that is elsewhere)', () => {
  let host: StaticHost
  let browser: Browser
  let folder: string
  /** What the pages wrote to their consoles. */
  const complaints: string[] = []
  const path = (name: string) => join(folder, name)

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'stemwork-device-'))
    const rate = 44_100
    await writeWav(path('song.wav'), [sine(20 * rate, 440, rate, 0.4), noise(20 * rate)], rate, '16')
    ;[host, browser] = await Promise.all([startHost(), openBrowser()])
  })
  afterAll(async () => {
    await browser?.close()
    await host?.close()
    await rm(folder, { recursive: true })
  })

  async function openPage(): Promise<Page> {
    const page = await (await browser.newContext()).newPage()
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(String(error)))
    await page.goto(host.base)
    await page.waitForFunction('globalThis.device')
    return page
  }

  /** Separates the file in the page, and returns the digest of each stem. */
  async function digests(page: Page, file: string): Promise<Record<string, string>> {
    await page.setInputFiles('input', file)
    return await page.locator('input').evaluate(async (input) => {
      const { device } = globalThis as unknown as { device: Device }
      const [chosen] = (input as unknown as Input).files
      const { stems } = await device.separate(chosen, { assets: { worker: '/stemwork/dist/browser/worker.js' } })
      const found: Record<string, string> = {}
      for (const [stem, content] of Object.entries(stems)) {
        const digest = await crypto.subtle.digest('SHA-256', await content.arrayBuffer())
        found[stem] = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
      }
      return found
    })
  }

  async function serverDigests(file: string): Promise<Record<string, string>> {
    const outputs = { vocals: path('vocals.wav'), accompaniments: path('accompaniments.wav') }
    await separate(file, { outputs, runtime: 'wasm', threads: 1 })
    const found: Record<string, string> = {}
    for (const [stem, output] of Object.entries(outputs))
      found[stem] = createHash('sha256')
        .update(await readFile(output))
        .digest('hex')
    return found
  }

  test('gives the bytes of the server', async () => {
    const page = await openPage()
    expect(await digests(page, path('song.wav'))).toEqual(await serverDigests(path('song.wav')))
  })
})
