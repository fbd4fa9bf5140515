import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { noise, sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, startConsole } from './browser.js'

const rate = 44_100
const lowRate = 8000
/** What the tests use of a canvas: they are compiled without a browser's types. */
interface Canvas {
  width: number
  height: number
  getContext(kind: '2d'): {
    getImageData(x: number, y: number, width: number, height: number): { data: Uint8ClampedArray }
  }
}

const patienceMs = 60_000
vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 3 * patienceMs })

/** A state that the page reaches by itself; how soon is a matter of the machine. */
function eventually<T>(state: () => T | Promise<T>) {
  return expect.poll(state, { timeout: patienceMs })
}

const phone: BrowserContextOptions = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

describe.skipIf(!chromiumPath)(
  'the console in a browser (needs Chromium; CHROMIUM_PATH names one that is elsewhere)',
  () => {
    let service: ConsoleService
    let browser: Browser
    let folder: string
    let axe: string
    const complaints: string[] = []
    const path = (name: string) => join(folder, name)

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'stemwork-browser-'))
      await writeWav(path('short song.wav'), [sine(8 * rate, 440, rate, 0.4), noise(8 * rate)], rate, '16')
      // So long that no machine is done with it while the page is reloaded; nobody waits for its end.
      await writeWav(path('long song.wav'), [sine(900 * lowRate, 330, lowRate, 0.4)], lowRate, '16')
      await writeFile(path('notes.txt'), 'These are words about a song and no song.\n')
      axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
      ;[service, browser] = await Promise.all([startConsole(), openBrowser()])
    })
    afterAll(async () => {
      await browser?.close()
      await service?.stop()
      await rm(folder, { recursive: true })
    })
    afterEach(async () => {
      for (const context of browser.contexts()) await context.close()
      expect(complaints.splice(0)).toEqual([])
    })

    async function open(options: BrowserContextOptions = {}): Promise<Page> {
      const page = await (await browser.newContext(options)).newPage()
      page.setDefaultTimeout(patienceMs)
      page.on('pageerror', (error) => complaints.push(String(error)))
      // Whether a visitor needs a key is found out by asking without one, which the browser logs.
      page.on(
        'console',
        (message) => message.type() === 'error' && !/40[14] \(/.test(message.text()) && complaints.push(message.text()),
      )
      page.on(
        'request',
        (request) =>
          new URL(request.url()).origin === new URL(service.base).origin ||
          complaints.push(`asked for ${request.url()}`),
      )
      await page.goto(`${service.base}/console`)
      return page
    }

    async function signedIn(options?: BrowserContextOptions): Promise<Page> {
      const page = await open(options)
      await page.getByLabel('API key').fill(service.key)
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('button', { name: 'Choose a song' }).waitFor()
      return page
    }

    async function send(page: Page, name: string): Promise<void> {
      await page.locator('input[type=file]').setInputFiles(path(name))
      await page.getByRole('heading', { name, level: 1 }).waitFor()
    }

    const hasFocus = (element: Locator) =>
      element.evaluate((button: { matches(selector: string): boolean }) => button.matches(':focus'))

    const focused = (element: Locator) => eventually(() => hasFocus(element)).toBe(true)

    /** Whatever the default rules of axe find: WCAG A and AA, and best practices. */
    async function barriers(page: Page): Promise<string[]> {
      await page.evaluate(axe)
      const run =
        "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))"
      return page.evaluate<string[]>(run)
    }

    test('takes a song to stems that play, mute, seek and download', async () => {
      const page = await signedIn()
      await send(page, 'short song.wav')
      await page.getByRole('region', { name: 'Listen' }).waitFor()

      for (const name of ['Vocals', 'Accompaniment']) {
        const picture = page.getByRole('img', { name: `Waveform of ${name}` })
        await eventually(() =>
          picture.evaluate((canvas: Canvas) =>
            canvas
              .getContext('2d')
              .getImageData(0, 0, canvas.width, canvas.height)
              .data.some((value) => value > 0),
          ),
        ).toBe(true)
      }
      const position = () =>
        page.getByRole('slider', { name: 'Position' }).evaluate((slider: { value: string }) => Number(slider.value))
      await page.getByRole('button', { name: 'Play', exact: true }).click()
      await eventually(position).toBeGreaterThan(0.5)
      await page.getByRole('button', { name: 'Pause' }).click()

      const vocals = page.getByRole('region', { name: 'Vocals' })
      const accompaniment = page.getByRole('region', { name: 'Accompaniment' })
      await page.getByRole('button', { name: 'Solo Vocals' }).click()
      await eventually(() => accompaniment.getAttribute('class')).toContain('silent')
      await page.getByRole('button', { name: 'Solo Vocals' }).click()
      await page.getByRole('button', { name: 'Mute Vocals' }).click()
      await eventually(() => vocals.getAttribute('class')).toContain('silent')
      expect(await accompaniment.getAttribute('class')).not.toContain('silent')
      await page.getByRole('slider', { name: 'Volume of Accompaniment' }).fill('40')

      const picture = accompaniment.locator('.picture')
      const { width, height } = (await picture.boundingBox()) ?? { width: 0, height: 0 }
      await picture.click({ position: { x: width / 2, y: height / 2 } })
      await eventually(position).toBeCloseTo(4, 1)

      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'Vocals WAV' }).click(),
      ])
      expect(download.suggestedFilename()).toBe('vocals.wav')
      const bytes = await readFile(await download.path())
      expect([bytes.toString('latin1', 0, 4), bytes.length > 8 * rate * 4]).toEqual(['RIFF', true])
    })

    test('shows spectrograms on request', async () => {
      const page = await signedIn()
      await send(page, 'short song.wav')
      await page.getByLabel('Spectrogram', { exact: true }).check({ force: true })
      const picture = page.getByRole('img', { name: 'Spectrogram of Accompaniment' })
      const brightness = () =>
        picture.evaluate((canvas: Canvas) =>
          [...canvas.getContext('2d').getImageData(479, 0, 1, 160).data].reduce((sum, value) => sum + value, 0),
        )
      // Opaque alone is 160 x 255.
      await eventually(brightness).toBeGreaterThan(160 * 255 * 1.3)
    })

    test('works with the keyboard alone', async () => {
      const page = await open()
      // Asked for early: the browser needs a moment to hand the dialogue over.
      const chooser = page.waitForEvent('filechooser')
      // The key field has the focus already.
      await focused(page.getByLabel('API key'))
      await page.keyboard.type(service.key)
      await page.keyboard.press('Enter')
      const choose = page.getByRole('button', { name: 'Choose a song' })
      await choose.waitFor()
      for (let presses = 0; presses < 10 && !(await hasFocus(choose)); presses++) await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await (await chooser).setFiles(path('short song.wav'))
      await page.getByRole('region', { name: 'Listen' }).waitFor()
      const time = () => page.locator('.transport .figure').innerText()

      await page.keyboard.press('ArrowRight')
      await eventually(time).toBe('0:05 / 0:08')
      await page.keyboard.press('ArrowLeft')
      await eventually(time).toBe('0:00 / 0:08')
      await page.keyboard.press('Space')
      await page.getByRole('button', { name: 'Pause' }).waitFor()
      await page.keyboard.press('Space')
      await page.getByRole('button', { name: 'Play', exact: true }).waitFor()
      await page.keyboard.press('1')
      await eventually(() => page.getByRole('button', { name: 'Mute Vocals' }).getAttribute('aria-pressed')).toBe(
        'true',
      )
      await page.keyboard.press('Shift+2')
      await eventually(() =>
        page.getByRole('button', { name: 'Solo Accompaniment' }).getAttribute('aria-pressed'),
      ).toBe('true')

      const ask = page.getByRole('button', { name: 'Delete short song.wav' })
      const dialog = page.getByRole('dialog')
      await ask.focus()
      // More than once: a press that comes right after the dialogue is gone has to open it again.
      for (let turn = 0; turn < 3; turn++) {
        await page.keyboard.press('Enter')
        await focused(dialog.getByRole('button', { name: 'Keep' }))
        await page.keyboard.press('Escape')
        await focused(ask)
      }
      await page.keyboard.press('Enter')
      await focused(dialog.getByRole('button', { name: 'Keep' }))
      await page.keyboard.press('Tab')
      await focused(dialog.getByRole('button', { name: 'Delete' }))
      await page.keyboard.press('Enter')
      await choose.waitFor()
    })

    test('sends a song in the format, with the model and in the batch that a person chooses, and finds it by its batch', async () => {
      const page = await signedIn()
      await page.getByText('Options').click()
      await page.getByLabel('Format').selectOption('FLAC, 16 bits')
      await page.getByLabel('Model').selectOption('embedded')
      await page.getByLabel('Batch').first().fill('Night run')
      expect(await barriers(page)).toEqual([])
      await send(page, 'short song.wav')
      await page.getByRole('region', { name: 'Listen' }).waitFor()
      await page.getByRole('link', { name: 'Vocals FLAC' }).waitFor()

      await page.getByRole('link', { name: 'All songs' }).click()
      await page.getByText('Options').click()
      expect(await page.getByLabel('Format').locator('option:checked').innerText()).toBe('FLAC, 16 bits')
      const filter = page.getByRole('searchbox', { name: 'Batch' })
      await filter.fill('Night run')
      await filter.press('Enter')
      const rows = page.locator('.rows li')
      await eventually(() => rows.allInnerTexts()).toEqual([expect.stringContaining('Night run')])
      await filter.fill('Another night')
      await filter.press('Enter')
      await page.getByText('No job passes these filters.').waitFor()
    })

    test('tells in plain words that a key is wrong and that a file is no song', async () => {
      const page = await open()
      await page.getByLabel('API key').fill('a-key-that-nobody-made')
      await page.getByRole('button', { name: 'Continue' }).click()
      expect(await page.getByRole('alert').innerText()).toContain('This key is not valid here')
      await page.getByLabel('API key').fill(service.key)
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('button', { name: 'Choose a song' }).waitFor()
      await send(page, 'notes.txt')
      expect(await page.getByRole('alert').innerText()).toContain('This file is not audio that can be read here')

      await page.getByRole('link', { name: 'All songs' }).click()
      await page.getByLabel('Failed', { exact: true }).check({ force: true })
      const rows = page.locator('.rows li')
      await eventually(() => rows.allInnerTexts()).toEqual([expect.stringContaining('notes.txt')])
      await page.getByLabel('Waiting', { exact: true }).check({ force: true })
      await page.getByText('No job passes these filters.').waitFor()
    })

    test('goes on with a job after a reload, tells the time left, and stops the job when it is asked to', async () => {
      const page = await signedIn()
      await send(page, 'long song.wav')
      const bar = page.getByRole('progressbar', { name: 'Progress' })
      const progress = () => bar.evaluate((element: { value: number }) => element.value)
      await eventually(progress).toBeGreaterThan(0.03)
      await page.reload()
      await page.getByRole('heading', { name: 'long song.wav' }).waitFor()
      const atReload = await progress()
      await eventually(progress).toBeGreaterThan(atReload)
      await page.getByText(/seconds left|a minute left|minutes left/).waitFor()
      await page.getByRole('button', { name: 'Stop long song.wav' }).click()
      await page.getByText('This job was stopped.').waitFor()
    })

    test('forgets the key with the tab and at signing out', async () => {
      const page = await signedIn()
      await page.reload()
      await page.getByRole('button', { name: 'Choose a song' }).waitFor()
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.reload()
      await page.getByLabel('API key').waitFor()
      expect(await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])')).toBe(
        '[{},{},""]',
      )
    })

    test.each([
      ['light', {}],
      ['dark', {}],
      ['light', phone],
      ['dark', phone],
    ] as const)(
      'has no barriers that axe finds, and nothing to scroll sideways: %s %o',
      async (colorScheme, device) => {
        const page = await open({ ...device, colorScheme, reducedMotion: 'reduce' })
        await page.getByLabel('API key').waitFor()
        expect(await barriers(page)).toEqual([])
        await page.getByLabel('API key').fill(service.key)
        await page.getByRole('button', { name: 'Continue' }).click()
        await send(page, 'short song.wav')
        await page.getByRole('region', { name: 'Listen' }).waitFor()
        await page.getByRole('button', { name: 'Mute Vocals' }).click()
        expect(await barriers(page)).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
        await page.getByRole('button', { name: 'Delete short song.wav' }).click()
        await page.getByRole('dialog').waitFor()
        expect(await barriers(page)).toEqual([])
        await page.getByRole('button', { name: 'Keep' }).click()
        await page.getByRole('link', { name: 'All songs' }).click()
        await page.locator('.rows li').first().waitFor()
        expect(await barriers(page)).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
      },
    )
  },
)
