import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page, Response } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { mp3InfoFrame } from '../../src/core/media/decode/mpeg/mp3-info.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { pollJob, type Service, startService } from '../http/harness.js'
import { sine } from '../separation/tracks.js'
import { chromiumPath, openBrowser } from './browser.js'
import { ConsolePages, eventually, patienceMs, position, tidyUp } from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: patienceMs, hookTimeout: 3 * patienceMs })

const hour = 3600
const megabyte = 1024 ** 2
/** Memory that the player may use for an hour of audio. Decoded whole, the smallest file below would take 230 MB. */
const mostGrowth = 120 * megabyte

const formats = ['wav', 'flac', 'mp3'] as const
type Format = (typeof formats)[number]

/** Writes an hour of a tone, quickly: reading is what is tested. */
const writers: Record<Format, (path: string) => Promise<void>> = {
  /** 635 MB, of which the disk holds only the audible seconds. */
  async wav(path) {
    const [rate, bytesPerSecond] = [44_100, 44_100 * 4]
    const header = Buffer.alloc(44)
    header.write('RIFF', 0, 'latin1')
    header.writeUInt32LE(36 + hour * bytesPerSecond, 4)
    header.write('WAVEfmt ', 8, 'latin1')
    header.writeUInt32LE(16, 16)
    header.writeUInt16LE(1, 20)
    header.writeUInt16LE(2, 22)
    header.writeUInt32LE(rate, 24)
    header.writeUInt32LE(bytesPerSecond, 28)
    header.writeUInt16LE(4, 32)
    header.writeUInt16LE(16, 34)
    header.write('data', 36, 'latin1')
    header.writeUInt32LE(hour * bytesPerSecond, 40)
    const file = await open(path, 'w')
    await file.write(header, 0, 44, 0)
    await file.write(Buffer.alloc(bytesPerSecond, 7), 0, bytesPerSecond, 44 + 1800 * bytesPerSecond)
    await file.truncate(44 + hour * bytesPerSecond)
    await file.close()
  },
  async flac(path) {
    const [rate, block] = [8000, 60]
    const tone = sine(block * rate, 440, rate, 0.4)
    const encoder = await openEncoder(path, { sampleRate: rate, channels: 2, format: 'flac' })
    for (let minute = 0; minute < hour / block; minute++) await encoder.write([tone, tone])
    await encoder.close()
  },
  /** The frames of a minute, sixty times. Each stands alone, and at this rate a minute is a whole number of frames. */
  async mp3(path) {
    const [rate, block, frameBytes] = [48_000, 60, 960]
    const frameCount = (block * rate) / 1152
    const tone = sine((block + 1) * rate, 440, rate, 0.4)
    const encoder = await openEncoder(path, { sampleRate: rate, channels: 1, format: 'mp3' })
    await encoder.write([tone])
    await encoder.close()
    const minute = (await readFile(path)).subarray(frameBytes, (1 + frameCount) * frameBytes)
    // Some extra frames at the end: a decoder's first samples are those of its filters.
    const frames = (hour / block) * frameCount + 3
    const facts = { frameCount: frames, bytes: (1 + frames) * frameBytes, sampleCount: hour * rate }
    const file = await open(path, 'w')
    await file.write(mp3InfoFrame(minute.subarray(0, 4), { ...facts, encoderDelay: 1104 }))
    for (let n = 0; n < hour / block; n++) await file.write(minute)
    await file.write(minute.subarray(0, 3 * frameBytes))
    await file.close()
  },
}

const hours = defineWorkflow({
  id: 'service/hours',
  name: 'An hour',
  description: 'Makes an hour of sound.',
  params: z.object({ format: z.enum(formats) }),
  inputs: [],
  outputs: ({ format }) => ({ music: { fileName: `music.${format}`, contentType: `audio/${format}` } }),
  stages: [{ name: 'write', run: ({ params, outputPath }) => writers[params.format](outputPath('music')) }],
})

describe.skipIf(!chromiumPath)('what the console costs (needs Chromium)', () => {
  let service: Service
  let browser: Browser
  let pages: ConsolePages
  const folder = temporaryFolder()

  beforeAll(async () => {
    ;[service, browser] = await Promise.all([
      startService({
        http: { console: true },
        workflows: [hours],
        blobs: fsBlobs({ directory: join(folder, 'blobs') }),
        engine: { scratchDirectory: join(folder, 'scratch') },
      }),
      openBrowser(),
    ])
    pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
  })
  tidyUp(() => ({ browser, service }))

  test('the first row appears after few requests and few bytes, with a full page of songs', async () => {
    const { key } = await service.addApplication('Full')
    const ids: string[] = []
    for (let n = 0; n < 60; n++) ids.push(await service.created({ name: `Song ${n}` }, { key }))
    try {
      const page = await pages.open({}, '/healthz')
      await pages.signIn(page, key)
      const session = await page.context().newCDPSession(page)
      await session.send('Network.enable')
      const paths = new Map<string, string>()
      const bytes = new Map<string, number>()
      session.on('Network.requestWillBeSent', ({ requestId, request }) => {
        paths.set(requestId, new URL(request.url).pathname.replace('/v1', ''))
      })
      session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
        bytes.set(requestId, encodedDataLength)
      })
      await page.goto(`${service.base}/console`)
      await page.locator('.rows li').first().waitFor()
      // The previous page requested its icon.
      const asked = [...paths.values()].filter((path) => path !== '/favicon.ico')
      // The page, its style and two scripts; the key's application; the event stream, the list, the workflows and one
      // workflow.
      expect(new Set(asked).size, asked.join(' ')).toBeLessThanOrEqual(9)
      // The list is read again once the event stream is open.
      expect(asked.length, asked.join(' ')).toBeLessThanOrEqual(11)
      const scripts = [...bytes].filter(([id]) => paths.get(id)?.endsWith('.js')).map(([, size]) => size)
      expect(scripts.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(26_000)
      const total = [...bytes.values()].reduce((sum, size) => sum + size, 0)
      // 50 songs make up most of the rest.
      expect(total).toBeLessThan(120_000)
    } finally {
      // Running, they would hold every slot for ever, and the tests below wait for one.
      for (const id of ids) await service.api(`/job/${id}`, { method: 'DELETE', key })
    }
  })

  test.each(formats)(
    'an hour of %s plays from any position without being downloaded or decoded completely',
    async (format) => {
      const id = await service.created({ workflow: 'service/hours', name: `An hour.${format}`, params: { format } })
      expect((await pollJob(service, id)).status).toBe('SUCCEEDED')
      const page = await pages.signedIn()
      const readings: Promise<number>[] = []
      page.on('response', (response) => {
        if (response.url().includes('/storage/')) readings.push(bodyBytes(response))
      })
      const before = await residentBytes(page)
      await page.getByRole('link', { name: `An hour.${format}` }).click()
      await page.getByRole('region', { name: 'Listen' }).waitFor()
      await page.getByText('/ 1:00:00').waitFor()
      const slider = page.getByRole('slider', { name: 'Position' })
      await page.getByRole('button', { name: 'Play', exact: true }).click()
      for (const seconds of [0, 3000, 600, 1800, 3500]) {
        // The position advances only once the samples at that position are loaded.
        await slider.fill(String(seconds))
        await eventually(() => position(page)).toBeGreaterThan(seconds + 0.2)
      }
      const growth = (await residentBytes(page)) - before
      const read = (await Promise.all(readings)).reduce((sum, bytes) => sum + bytes, 0)
      // A few pieces around each of the five positions.
      expect(read).toBeLessThan(40 * megabyte)
      if (before > 0) expect(growth).toBeLessThan(mostGrowth)
      expect((await service.api(`/job/${id}`, { method: 'DELETE' })).status).toBe(200)
    },
  )
})

async function bodyBytes(response: Response): Promise<number> {
  return Number((await response.allHeaders())['content-length'] ?? 0)
}

/** Memory of the page's process after a garbage collection; 0 where the system does not report it. */
async function residentBytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  await session.detach()
  const browser = await page.context().browser()?.newBrowserCDPSession()
  const { processInfo = [] } = (await browser?.send('SystemInfo.getProcessInfo')) ?? {}
  await browser?.detach()
  if (process.platform !== 'linux') return 0
  const sizes = await Promise.all(
    processInfo
      .filter(({ type }) => type === 'renderer')
      .map(async ({ id }) => {
        const status = await readFile(`/proc/${id}/status`, 'utf8').catch(() => '')
        return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024
      }),
  )
  return Math.max(0, ...sizes)
}
