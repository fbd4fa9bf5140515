import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { audioPeaks } from '../../src/core/media/pictures/audio-peaks.js'
import { type Service, startService } from '../http/harness.js'
import { sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, openBrowser } from './browser.js'
import {
  barriers,
  crampedButtons,
  ConsolePages,
  eventually,
  focused,
  narrow,
  openSong,
  overflow,
  patienceMs,
  phone,
  rowOf,
  send,
  zoomed,
  tidyUp,
} from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 2 * patienceMs })

const rate = 8000
const desktop = { width: 1280, height: 720 }
const song = 'Harbour Lights.wav'
/** As long as a file system allows, with a word too long for a line, and with text in both directions. */
const longSong = `${'Live_at_the_old_harbour_'.repeat(4)} 🎤 مرحبا بالعالم ${'and the second night '.repeat(4)}.wav`
/** axe's findings depend on layout and colours; overflow depends on the width alone. */
const sizes: [name: string, size: BrowserContextOptions, widths: (typeof narrow)['viewport'][]][] = [
  ['desktop, 320 px and 200 %, light', { colorScheme: 'light', viewport: desktop }, [narrow.viewport, zoomed.viewport]],
  ['phone, dark', { ...phone, colorScheme: 'dark' }, []],
]

describe.skipIf(!chromiumPath)('every page and state of the console (needs Chromium)', () => {
  let service: Service
  let browser: Browser
  let pages: ConsolePages
  const folder = temporaryFolder()

  beforeAll(async () => {
    await writeWav(join(folder, song), [sine(8 * rate, 440, rate, 0.4)], rate, '16')
    await copyFile(join(folder, song), join(folder, longSong))
    await writeFile(join(folder, 'empty.mp3'), '')
    ;[service, browser] = await Promise.all([
      startService({
        http: { console: true, manageKeys: true },
        // Each test leaves a held job, which keeps its slot.
        engine: { dispatch: { concurrency: 50 } },
        audioPeaks: audioPeaks({ directory: folder }),
      }),
      openBrowser(),
    ])
    pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
  })
  tidyUp(() => ({ browser, service }))

  /** An application with a finished, a failed and a running song; its key signs in. */
  async function withSongs(): Promise<string> {
    const { key } = await service.addApplication('Studio')
    await service.created({ name: 'A long lecture' }, { key })
    return key
  }

  async function signedIn(key: string, options: BrowserContextOptions): Promise<Page> {
    const page = await pages.entered({ ...options, reducedMotion: 'reduce' }, key)
    await page.getByText('Connected', { exact: true }).waitFor()
    return page
  }

  test.each(sizes)(
    'has no accessibility problem that axe finds, and no horizontal scrolling: %s',
    async (_, size, widths) => {
      const found: unknown[] = []
      const check = async (state: string, page: Page) => {
        const problems = [...(await barriers(page)), ...(await crampedButtons(page))]
        const pixels = await overflow(page)
        if (problems.length > 0 || pixels > 0) found.push([state, problems, pixels])
        for (const width of widths) {
          await page.setViewportSize(width)
          const wider = await overflow(page)
          if (wider > 0) found.push([state, width, wider])
        }
        if (widths.length > 0) await page.setViewportSize(desktop)
      }
      const stranger = await pages.open({ ...size, reducedMotion: 'reduce' })
      await stranger.getByText('Where do I find a key?').click()
      await check('signed out', stranger)
      await stranger.getByLabel('API key').fill('wrong')
      await stranger.getByRole('button', { name: 'Continue' }).click()
      await stranger.getByRole('alert').waitFor()
      await check('wrong key', stranger)

      const page = await signedIn((await service.addApplication('New')).key, size)
      await page.getByText('No songs yet.').waitFor()
      await page.getByText('Options').click()
      await check('empty library', page)

      const key = await withSongs()
      await page.goto('about:blank')
      await pages.signIn(page, key)
      await page.goto(`${service.base}/console`)
      await rowOf(page, 'A long lecture').locator('.status.started').waitFor()
      await send(page, join(folder, 'empty.mp3'), join(folder, longSong))
      await rowOf(page, longSong).locator('.status.succeeded').waitFor()
      await page.locator('.status.refused').waitFor()
      await check('library with a refused file', page)
      await page.getByRole('button', { name: 'Send anyway: empty.mp3' }).click()
      await rowOf(page, 'empty.mp3').locator('.status.failed').waitFor()
      for (const box of await page.locator('.rows input').all()) await box.check()
      await check('all selected', page)
      await page.context().setOffline(true)
      await page.getByText('Reconnecting', { exact: true }).waitFor()
      await check('disconnected', page)
      await page.context().setOffline(false)
      await page.getByText('Connected', { exact: true }).waitFor()

      await openSong(page, longSong)
      await page.keyboard.press('ArrowRight')
      await page.keyboard.press('[')
      // Absent on a phone, which has no keyboard.
      if (await page.getByText('Keyboard shortcuts').isVisible()) await page.getByText('Keyboard shortcuts').click()
      await page.getByRole('button', { name: 'Mute Vocals' }).click()
      await check('player with a loop', page)
      await page.getByLabel('Spectrogram', { exact: true }).check({ force: true })
      await check('spectrogram', page)
      await page.getByRole('link', { name: 'Details' }).click()
      await page.getByRole('heading', { name: 'Timeline' }).waitFor()
      await check('details', page)
      for (const [name, state] of [
        ['empty.mp3', 'Why it failed'],
        ['A long lecture', 'Timeline'],
      ] as const) {
        await page.getByRole('link', { name: 'Library' }).click()
        await rowOf(page, name).getByRole('link', { name }).click()
        await page.getByRole('heading', { name, level: 1 }).waitFor()
        await check(name, page)
        await page.getByRole('link', { name: 'Details' }).click()
        await page.getByRole('heading', { name: state }).waitFor()
        await check(`details of ${name}`, page)
      }
      await page.getByRole('link', { name: 'API keys' }).click()
      await page.getByRole('button', { name: 'Create key' }).click()
      await page.getByRole('region', { name: 'The new key' }).waitFor()
      await check('keys', page)
      await page.evaluate("location.hash = '#/job/00000000-0000-4000-8000-000000000000'")
      await page.getByText('This song no longer exists.').waitFor()
      await check('no such song', page)
      await page.getByRole('link', { name: 'Library' }).click()
      await rowOf(page, longSong)
        .getByRole('button', { name: `Delete ${longSong}` })
        .click()
      await page.getByRole('button', { name: 'Undo' }).waitFor()
      await check('deleted', page)
      expect(found).toEqual([])
    },
  )

  test.each([['desktop', {}] as const, ['phone', phone] as const])(
    'the focus is never lost, and the end of a job is announced: %s',
    async (_, size) => {
      const page = await signedIn(await withSongs(), size)
      const held = page.getByText('A long lecture')
      await held.waitFor()
      const hasFocus = async () => expect(await page.evaluate('document.activeElement.tagName')).not.toBe('BODY')

      await send(page, join(folder, song))
      await eventually(() => page.getByRole('status').allInnerTexts()).toContain(`${song}: done.`)
      // After a route change, forward and back.
      await openSong(page, song)
      await focused(page.getByRole('heading', { name: song }))
      await page.getByRole('link', { name: '← All songs' }).press('Enter')
      await focused(rowOf(page, song).getByRole('link'))
      await page.getByRole('link', { name: 'API keys' }).press('Enter')
      await focused(page.getByRole('heading', { name: 'API keys' }))
      // After the element with the focus was removed.
      await page.getByLabel('Name of the key').fill('Studio')
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Revoke Studio' }).press('Enter')
      await page.getByRole('button', { name: 'Revoke key' }).press('Enter')
      await focused(page.getByRole('heading', { name: 'API keys' }))
      // After a deletion and its undo.
      await page.getByRole('link', { name: 'Library' }).press('Enter')
      await rowOf(page, song)
        .getByRole('button', { name: `Delete ${song}` })
        .press('Enter')
      await focused(rowOf(page, 'A long lecture').getByRole('link'))
      await page.getByRole('button', { name: 'Undo' }).press('Enter')
      await rowOf(page, song).waitFor()
      await hasFocus()
      // After the button of a row disappeared with the job's state.
      await rowOf(page, 'A long lecture').getByRole('button', { name: 'Stop A long lecture' }).press('Enter')
      await rowOf(page, 'A long lecture').locator('.status.stopped').waitFor()
      await hasFocus()
      // After a cancelled dialogue: the toast that asks for a file.
      await rowOf(page, 'A long lecture').getByRole('button', { name: 'Send again: A long lecture' }).press('Enter')
      await rowOf(page, 'A long lecture').locator('.status.started').waitFor()
      await hasFocus()
      await page.getByRole('button', { name: 'Sign out' }).press('Enter')
      await focused(page.getByLabel('API key'))
    },
  )

  test('rows show a waveform of few peaks, requested once, when they come into view', async () => {
    const { id: app, key } = await service.addApplication('Many songs')
    const page = await signedIn(key, { viewport: { width: 1280, height: 360 } })
    const asked: string[] = []
    page.on('response', (response) => response.url().includes('/peaks/') && asked.push(response.url()))
    const count = 8
    for (let n = 0; n < count; n++) await send(page, join(folder, song))
    await eventually(() => service.engine.count({ app, statuses: ['SUCCEEDED'] })).toBe(count)
    await page.reload()
    asked.length = 0
    await page.evaluate('scrollTo(0, 0)')
    const inked = () =>
      page.locator('.mini').evaluateAll(
        (all) =>
          (
            all as unknown as {
              width: number
              getContext(kind: '2d'): {
                getImageData(x: number, y: number, w: number, h: number): { data: Uint8ClampedArray }
              }
              height: number
            }[]
          )
            .filter(({ width }) => width > 0)
            .filter((one) =>
              one
                .getContext('2d')
                .getImageData(0, 0, one.width, one.height)
                .data.some((value) => value > 0),
            ).length,
      )
    await page.locator('.mini').first().scrollIntoViewIfNeeded()
    await eventually(inked).toBeGreaterThan(0)
    // Two stems a row; rows far below are not requested.
    expect(asked.length).toBeLessThan(2 * count)
    const down = async () => {
      await page.locator('.rows li').last().scrollIntoViewIfNeeded()
      return asked.length
    }
    await eventually(down).toBe(2 * count)
    await eventually(inked).toBeGreaterThan(0)
    expect(new Set(asked).size).toBe(2 * count)
    expect(asked.every((url) => url.endsWith('?length=96'))).toBe(true)
    const [first] = asked
    const answer = await fetch(first!, { headers: { authorization: key } })
    expect((await answer.arrayBuffer()).byteLength).toBeLessThan(2000)
    // On return, nothing is requested again.
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('link', { name: 'Library' }).click()
    await page.locator('.mini').first().scrollIntoViewIfNeeded()
    await eventually(inked).toBeGreaterThan(0)
    expect(asked).toHaveLength(2 * count)
  })

  test('printed pages show the songs, dark on light, without buttons', async () => {
    const page = await signedIn(await withSongs(), { colorScheme: 'dark', viewport: { width: 794, height: 1123 } })
    await send(page, join(folder, song))
    await rowOf(page, song).locator('.status.succeeded').waitFor()
    const printed = async () => {
      await page.emulateMedia({ media: 'print' })
      const controls = await page
        .locator('button, input, select, nav a')
        .evaluateAll(
          (all) => (all as unknown as { checkVisibility(): boolean }[]).filter((one) => one.checkVisibility()).length,
        )
      const colour = await page.evaluate<string>('getComputedStyle(document.body).color')
      const text = await page.locator('main').innerText()
      expect([controls, colour, await overflow(page)]).toEqual([0, 'rgb(32, 36, 42)', 0])
      await page.emulateMedia({ media: 'screen' })
      return text
    }
    const list = await printed()
    expect(list).toContain(song)
    expect(list).toContain('Done')
    await openSong(page, song)
    const player = await printed()
    expect(player).toContain(song)
    expect(player).toContain('Accompaniment')
    expect(player).not.toMatch(/Offline|Share this song/)
    await page.emulateMedia({ media: 'print' })
    expect(await page.getByRole('img', { name: 'Waveform of Vocals' }).isVisible()).toBe(true)
    await page.emulateMedia({ media: 'screen' })
    await page.getByRole('link', { name: 'Details' }).click()
    expect(await printed()).toContain('Timeline')
  })

  test.each([['desktop', {}] as const, ['phone', phone] as const])(
    'without JavaScript, the pages say what to do instead: %s',
    async (_, size) => {
      const page = await pages.open({ ...size, javaScriptEnabled: false })
      expect(await page.locator('main').innerText()).toContain('npx stemwork separate song.mp3')
      await page.getByRole('link', { name: 'HTTP interface' }).click()
      await page.getByRole('heading', { name: 'Create a job' }).waitFor()
      expect(await page.locator('main').innerText()).toContain('Turn on JavaScript to send requests from this page.')

      // axe needs scripts: it inspects the same text, without the page's own script.
      const shown = await pages.open(size, '/healthz')
      await shown.route('**/console/app.js', (route) => route.abort())
      await shown.route('**/console', async (route) => {
        const response = await route.fetch()
        await route.fulfill({ response, body: (await response.text()).replaceAll(/<\/?noscript>/g, '') })
      })
      await shown.goto(`${service.base}/console`)
      await shown.getByRole('heading', { name: 'stemwork' }).waitFor()
      expect([await barriers(shown), await overflow(shown)]).toEqual([[], 0])
    },
  )
})
