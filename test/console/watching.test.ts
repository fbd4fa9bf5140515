import { execFileSync, spawnSync } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createClient } from '../../src/client/client.js'
import { sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, startConsole } from './browser.js'
import {
  barriers,
  ConsolePages,
  eventually,
  layoutShift,
  overflow,
  patienceMs,
  phone,
  position,
  send,
  tidyUp,
} from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 8000
/** Too long for any test to reach its end. */
const longSeconds = 1500
const shortSeconds = 12
const hasFfmpeg = spawnSync('ffmpeg', ['-version']).error === undefined

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 3 * patienceMs })

/** The share of a canvas's width whose bars are higher than the line of silence. */
const drawn = (stem: string) => `(() => {
  const canvas = document.querySelector('[aria-label="Waveform of ${stem}"]')
  const { width, height } = canvas
  const { data } = canvas.getContext('2d').getImageData(0, Math.floor(height * 0.45), width, 1)
  return data.filter((value, index) => index % 4 === 3 && value > 0).length / width
})()`

/** The level that a meter shows. */
const loudness = (meter: { style: { getPropertyValue(name: string): string } }) =>
  Number(meter.style.getPropertyValue('--level'))

/** Writes ten seconds of noise, repeated: encoding is what takes time. */
function writeLong(path: string, minutes: number, ...encoder: string[]): void {
  const part = path.replace(/(\.\w+)$/, '-part$1')
  const ffmpeg = (...options: string[]) => execFileSync('ffmpeg', ['-loglevel', 'error', ...options])
  ffmpeg('-f', 'lavfi', '-i', 'anoisesrc=r=44100:d=10:a=0.4', '-ac', '2', ...encoder, part)
  ffmpeg('-stream_loop', String(6 * minutes - 1), '-i', part, '-t', String(60 * minutes), '-c', 'copy', path)
}

/** @returns a function that releases the uploads */
async function holdUploads(page: Page): Promise<() => void> {
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  await page.route('**/upload**', async (route) => {
    await released
    await route.continue()
  })
  return () => release()
}

describe.skipIf(!chromiumPath)('watching a song as it is separated (needs Chromium)', () => {
  let service: ConsoleService
  let browser: Browser
  const folder = temporaryFolder()
  let pages: ConsolePages

  beforeAll(async () => {
    await writeWav(join(folder, 'long.wav'), [sine(longSeconds * rate, 330, rate, 0.4)], rate, '16')
    await writeWav(join(folder, 'short.wav'), [sine(shortSeconds * rate, 440, rate, 0.4)], rate, '16')
    ;[service, browser] = await Promise.all([startConsole({ data: join(folder, 'data') }), openBrowser()])
    pages = new ConsolePages(browser, service)
  })
  // Runs after `tidyUp` has closed the pages, which would request removed jobs.
  afterEach(async () => {
    const client = createClient({ baseUrl: service.base, apiKey: service.key })
    for (const { id } of (await client.listJobs()).jobs) await client.deleteJob(id)
  })
  tidyUp(() => ({ browser, service }))

  /** The page of a song that has just been sent. */
  async function opened(name: string, options?: BrowserContextOptions): Promise<Page> {
    const page = await pages.signedIn(options)
    await send(page, join(folder, name))
    await page.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { name }).waitFor()
    await page.waitForURL(/#[/]job[/].{30}/)
    return page
  }
  /** A link to such a song, opened on the phone of a guest without a key. */
  async function guest(name: string): Promise<Page> {
    const sender = await opened(name)
    const id = /#[/]job[/]([^/]+)/.exec(sender.url())?.[1] ?? ''
    const { url } = await createClient({ baseUrl: service.base, apiKey: service.key }).createJobLink(id)
    return pages.open(phone, new URL(url).href.slice(service.base.length))
  }
  const slider = (page: Page) => page.getByRole('slider', { name: 'Position' })
  const shareDrawn = (page: Page, stem: string) => page.evaluate<number>(drawn(stem))
  const screenshot = async (page: Page, name: string) => {
    const { SCREENSHOTS } = process.env
    if (SCREENSHOTS !== undefined) await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) })
  }

  test('a song is heard from its file while it is uploaded, and its stems take over as they are made', async () => {
    const page = await pages.signedIn({ viewport: { width: 1280, height: 900 } })
    const release = await holdUploads(page)
    await send(page, join(folder, 'long.wav'))
    await page.getByRole('link', { name: 'long.wav', exact: true }).click()
    await page.getByRole('button', { name: 'Play', exact: true }).click()
    await eventually(() => position(page)).toBeGreaterThan(0.3)
    expect(await createClient({ baseUrl: service.base, apiKey: service.key }).listJobs()).toMatchObject({ jobs: [] })
    await page.getByText('/ 25:00').waitFor()
    await page.getByText(/you hear the original/).waitFor()
    // The whole song can be heard.
    await slider(page).fill('1400')
    await eventually(() => position(page)).toBeGreaterThan(1400.3)
    await slider(page).fill('0')
    expect(await barriers(page)).toEqual([])
    const shifted = await layoutShift(page)
    const player = await page.getByRole('region', { name: 'Listen' }).elementHandle()
    release()
    await page.waitForURL(/#[/]job[/].{30}/)
    await eventually(() => shareDrawn(page, 'Accompaniment')).toBeGreaterThan(0)
    // Finished parts of the stems are played.
    await slider(page).fill('0')
    await eventually(() => page.locator('[data-meter=accompaniments]').evaluate(loudness)).toBeGreaterThan(0)
    expect(await shifted()).toBe(0)
    // The same player continues, without a break.
    expect(await player?.evaluate((one: { isConnected: boolean }) => one.isConnected)).toBe(true)
    await page.getByRole('button', { name: 'Pause', exact: true }).waitFor()
  })

  test.skipIf(!hasFfmpeg).each([
    ['m4a', 12, ['-c:a', 'aac', '-aac_coder', 'fast', '-b:a', '320k']],
    ['ogg', 6, ['-c:a', 'libvorbis', '-q:a', '10']],
  ])(
    'a large file of %s can be played as soon as it is dropped, from any position (needs ffmpeg)',
    async (ending, minutes, encoder) => {
      const path = join(folder, `large.${ending}`)
      writeLong(path, minutes, ...encoder)
      // Too large to be decoded as a whole.
      expect((await stat(path)).size).toBeGreaterThan(16e6)
      const page = await pages.signedIn()
      const release = await holdUploads(page)
      await send(page, path)
      await page.getByRole('link', { name: `large.${ending}`, exact: true }).click()
      await page.getByRole('button', { name: 'Play', exact: true }).click()
      await eventually(() => position(page)).toBeGreaterThan(0.3)
      await page.getByText(`/ ${minutes}:00`).waitFor()
      const late = 60 * minutes - 20
      await slider(page).fill(String(late))
      await eventually(() => position(page)).toBeGreaterThan(late + 0.3)
      release()
      await page.waitForURL(/#[/]job[/].{30}/)
      await page.getByText(`/ ${minutes}:00`).waitFor()
      // Otherwise it would be separated for a long time.
      const id = page.url().slice(page.url().lastIndexOf('/') + 1)
      await createClient({ baseUrl: service.base, apiKey: service.key }).deleteJob(id)
    },
  )

  test.each([
    ['desktop', { viewport: { width: 1280, height: 900 } }],
    ['phone', phone],
  ])('nothing moves by itself from the drop of a song to its end: %s', async (_, options) => {
    const page = await pages.signedIn(options)
    const release = await holdUploads(page)
    await send(page, join(folder, 'short.wav'))
    await page.getByRole('link', { name: 'short.wav', exact: true }).click()
    await page.getByRole('button', { name: 'Play', exact: true }).waitFor()
    const shifted = await layoutShift(page)
    release()
    // Here, beats and everything else are known.
    await page.getByRole('button', { name: 'Snap loops', disabled: false }).waitFor()
    await page.getByRole('heading', { name: 'Download' }).waitFor()
    expect(await shifted()).toBe(0)
  })

  test('its full length is shown from the start, and its waveforms grow while it plays', async () => {
    const page = await opened('long.wav', { viewport: { width: 1280, height: 900 } })
    // From now on, it has no file, like any other page.
    await page.reload()
    await page.getByRole('region', { name: 'Listen' }).waitFor()
    expect(Math.round(Number(await slider(page).getAttribute('max')))).toBe(longSeconds)
    await page.getByText('/ 25:00').waitFor()
    await page.getByRole('button', { name: 'Play', exact: true }).click()
    await eventually(() => position(page)).toBeGreaterThan(0.3)
    await eventually(() => shareDrawn(page, 'Accompaniment')).toBeGreaterThan(0)
    const before = await shareDrawn(page, 'Accompaniment')
    await screenshot(page, 'watching')
    await eventually(() => shareDrawn(page, 'Accompaniment')).toBeGreaterThan(before)
    expect(await shareDrawn(page, 'Accompaniment')).toBeLessThan(0.9)
    // An export would save a part of the song as the whole.
    expect(await page.getByRole('button', { name: 'Export this mix' }).isDisabled()).toBe(true)
    expect(await barriers(page)).toEqual([])
    // Unfinished parts cannot be heard: the player waits at their edge.
    await slider(page).fill('1400')
    await eventually(() => position(page)).toBeLessThan(1400)
  })

  test('a guest watches it on a phone, and hears it, before it is done', async () => {
    const page = await guest('long.wav')
    await page.getByRole('heading', { name: 'long.wav' }).waitFor()
    await page.getByRole('region', { name: 'Listen' }).waitFor()
    await page.getByRole('button', { name: 'Play', exact: true }).click()
    await eventually(() => position(page)).toBeGreaterThan(0.3)
    await eventually(() => shareDrawn(page, 'Accompaniment')).toBeGreaterThan(0)
    await screenshot(page, 'guest-watching')
    expect(await overflow(page)).toBeLessThanOrEqual(0)
    expect(await barriers(page)).toEqual([])
  })
})
