import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createClient } from '../../src/client/client.js'
import { sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, startConsole } from './browser.js'
import { barriers, ConsolePages, eventually, overflow, patienceMs, phone, send } from './console-page.js'

const rate = 8000
/** So long that nobody waits for its end. */
const longSeconds = 3500

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 3 * patienceMs })

/** Of a canvas: the share of its width whose bars are higher than the line of silence. */
const drawn = (stem: string) => `(() => {
  const canvas = document.querySelector('[aria-label="Waveform of ${stem}"]')
  const { width, height } = canvas
  const { data } = canvas.getContext('2d').getImageData(0, Math.floor(height * 0.45), width, 1)
  return data.filter((value, index) => index % 4 === 3 && value > 0).length / width
})()`

describe.skipIf(!chromiumPath)('watching a song as it is separated (needs Chromium)', () => {
  let service: ConsoleService
  let browser: Browser
  let folder: string
  let pages: ConsolePages

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'stemwork-watching-'))
    await writeWav(join(folder, 'long.wav'), [sine(longSeconds * rate, 330, rate, 0.4)], rate, '16')
    ;[service, browser] = await Promise.all([startConsole({ data: join(folder, 'data') }), openBrowser()])
    pages = new ConsolePages(browser, service)
  })
  afterAll(async () => {
    await browser?.close()
    await service?.stop()
    await rm(folder, { recursive: true })
  })
  afterEach(async () => {
    const client = createClient({ baseUrl: service.base, apiKey: service.key })
    for (const { id } of (await client.listJobs()).jobs) await client.deleteJob(id)
    for (const context of browser.contexts()) await context.close()
    expect(pages.complaints.splice(0)).toEqual([])
  })

  /** The page of a song that was just sent. */
  async function opened(name: string, options?: BrowserContextOptions): Promise<Page> {
    const page = await pages.signedIn(options)
    await send(page, join(folder, name))
    await page.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { name }).waitFor()
    return page
  }
  /** A link to such a song, on the phone of somebody without a key. */
  async function guest(name: string): Promise<Page> {
    const sender = await opened(name)
    const id = /#[/]job[/]([^/]+)/.exec(sender.url())?.[1] ?? ''
    const { url } = await createClient({ baseUrl: service.base, apiKey: service.key }).createJobLink(id)
    return pages.open(phone, new URL(url).href.slice(service.base.length))
  }
  const position = (page: Page) => page.getByRole('slider', { name: 'Position' })
  const shareDrawn = (page: Page, stem: string) => page.evaluate<number>(drawn(stem))
  const screenshot = async (page: Page, name: string) => {
    const { SCREENSHOTS } = process.env
    if (SCREENSHOTS !== undefined) await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) })
  }

  test('its whole length stands from the start, and its waveforms grow while it plays', async () => {
    const page = await opened('long.wav', { viewport: { width: 1280, height: 900 } })
    await page.getByRole('region', { name: 'Listen' }).waitFor()
    expect(Math.round(Number(await position(page).getAttribute('max')))).toBe(longSeconds)
    await page.getByText('/ 58:20').waitFor()
    await page.getByRole('button', { name: 'Play', exact: true }).click()
    await eventually(() => position(page).inputValue().then(Number)).toBeGreaterThan(0.3)
    await eventually(() => shareDrawn(page, 'Accompaniment')).toBeGreaterThan(0)
    const before = await shareDrawn(page, 'Accompaniment')
    await screenshot(page, 'watching')
    await eventually(() => shareDrawn(page, 'Accompaniment')).toBeGreaterThan(before)
    expect(await shareDrawn(page, 'Accompaniment')).toBeLessThan(0.9)
    expect(await barriers(page)).toEqual([])
    // What is not made yet cannot be heard: the player waits at its edge.
    await position(page).fill('3400')
    expect(Number(await position(page).inputValue())).toBeLessThan(3400)
  })

  test('a guest watches it on a phone, and hears it, before it is done', async () => {
    const page = await guest('long.wav')
    await page.getByRole('heading', { name: 'long.wav' }).waitFor()
    await page.getByRole('region', { name: 'Listen' }).waitFor()
    await page.getByRole('button', { name: 'Play', exact: true }).click()
    await eventually(() => position(page).inputValue().then(Number)).toBeGreaterThan(0.3)
    await eventually(() => shareDrawn(page, 'Accompaniment')).toBeGreaterThan(0)
    await screenshot(page, 'guest-watching')
    expect(await overflow(page)).toBeLessThanOrEqual(0)
    expect(await barriers(page)).toEqual([])
  })
})
