import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { noise, sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, startConsole } from './browser.js'
import {
  barriers,
  type Canvas,
  ConsolePages,
  downloaded,
  eventually,
  focused,
  hasFocus,
  heardPeak,
  openSong,
  patienceMs,
  position,
  rowOf,
  send,
  tidyUp,
} from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 44_100
const lowRate = 8000

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 3 * patienceMs })

const longName = `${'A very long name without an end '.repeat(7)}.wav`

describe.skipIf(!chromiumPath)(
  'the console in a browser (needs Chromium; CHROMIUM_PATH names one that is elsewhere)',
  () => {
    let service: ConsoleService
    let browser: Browser
    const folder = temporaryFolder()
    let pages: ConsolePages
    const path = (name: string) => join(folder, name)

    beforeAll(async () => {
      await writeWav(path('short song.wav'), [sine(8 * rate, 440, rate, 0.4), noise(8 * rate)], rate, '16')
      await writeWav(path(longName), [sine(rate, 440, rate, 0.4)], rate, '16')
      // Too long for any machine to finish while the page is reloaded; no test waits for its end.
      await writeWav(path('long song.wav'), [sine(3500 * lowRate, 330, lowRate, 0.4)], lowRate, '16')
      // Content that neither the page nor the service can decode.
      await writeFile(path('damaged.mp3'), Buffer.alloc(3000, 1))
      ;[service, browser] = await Promise.all([startConsole({ data: path('data') }), openBrowser()])
      pages = new ConsolePages(browser, service)
      const page = await pages.signedIn()
      await send(page, path('short song.wav'))
      await openSong(page, 'short song.wav')
      await page.context().close()
    })
    tidyUp(() => ({ browser, service }))

    /** Opens the player of the short song. */
    async function player(page: Page): Promise<void> {
      // The song in the batch has other files.
      const rows = page.locator('.rows li').filter({ hasNotText: 'Night run' })
      await rows.getByRole('link', { name: 'short song.wav', exact: true }).last().click()
      await page.getByRole('region', { name: 'Listen' }).waitFor()
    }

    test('shows a song in one row from upload to done, in every open tab, and says when it is done', async () => {
      const page = await pages.signedIn()
      const other = await page.context().newPage()
      // A second tab needs no second sign-in.
      await other.goto(`${service.base}/console`)
      await other.getByText('Connected', { exact: true }).waitFor()
      await other.getByText('Loading …', { exact: true }).waitFor({ state: 'detached' })
      const before = await other.locator('.rows li').count()
      await send(page, path('short song.wav'))
      await eventually(() => other.locator('.rows li').count()).toBe(before + 1)
      await rowOf(page, 'short song.wav').locator('.status.succeeded').waitFor()
      await rowOf(other, 'short song.wav').locator('.status.succeeded').waitFor()
      await eventually(() => page.getByRole('status').allInnerTexts()).toContain('short song.wav: done.')
      expect(await page.locator('.rows li').count()).toBe(before + 1)
    })

    test('plays, mutes, seeks, loops and downloads under real names, with sizes', async () => {
      const page = await pages.signedIn()
      const asked: string[] = []
      page.on('request', (request) => asked.push(request.url()))
      await player(page)
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
      // Drawn from the service's peaks: only the head of each stem was read.
      expect(asked.filter((url) => /[/]storage[/].*[.]wav/.test(url))).toHaveLength(2)

      await page.getByRole('button', { name: 'Play', exact: true }).click()
      await eventually(() => position(page)).toBeGreaterThan(0.5)
      await page.getByRole('button', { name: 'Pause' }).click()

      const vocals = page.getByRole('region', { name: 'Vocals' })
      const accompaniment = page.getByRole('region', { name: 'Accompaniment' })
      await page.getByRole('button', { name: 'Solo Vocals' }).click()
      await eventually(() => accompaniment.getAttribute('class')).toContain('silent')
      await page.getByRole('button', { name: 'Solo Vocals' }).click()
      await page.getByRole('button', { name: 'Mute Vocals' }).click()
      await eventually(() => vocals.getAttribute('class')).toContain('silent')
      // The original is all stems unchanged.
      await page.getByLabel('Original', { exact: true }).check({ force: true })
      await eventually(() => vocals.getAttribute('class')).not.toContain('silent')
      await page.getByLabel('Mix', { exact: true }).check({ force: true })
      await eventually(() => vocals.getAttribute('class')).toContain('silent')
      await page.getByRole('slider', { name: 'Volume of Accompaniment' }).fill('40')

      await page.getByRole('button', { name: 'Snap loops' }).click()
      const picture = accompaniment.locator('.picture')
      await picture.scrollIntoViewIfNeeded()
      const { x, y, width, height } = (await picture.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }
      await picture.click({ position: { x: width / 2, y: height / 2 } })
      await eventually(() => position(page)).toBeCloseTo(4, 1)
      await page.mouse.move(x + width / 4, y + height / 2)
      await page.mouse.down()
      await page.mouse.move(x + width / 2, y + height / 2, { steps: 4 })
      await page.mouse.up()
      await page.getByText('Loop 0:02 to 0:04').waitFor()

      const download = await downloaded(page.getByRole('link', { name: 'Vocals WAV · 1.4 MB' }))
      expect(download.suggestedFilename()).toBe('short song - vocals.wav')
      const bytes = await readFile(await download.path())
      expect([bytes.toString('latin1', 0, 4), bytes.length > 8 * rate * 4]).toEqual(['RIFF', true])
      const archive = await downloaded(page.getByRole('button', { name: 'All (ZIP)' }))
      expect(archive.suggestedFilename()).toBe('short song - stems.zip')
      expect((await readFile(await archive.path())).includes('short song - accompaniments.wav')).toBe(true)
      const mix = await downloaded(page.getByRole('button', { name: 'Export this mix' }))
      expect(mix.suggestedFilename()).toBe('short song - mix.wav')
      // Two of the eight seconds: the loop's length.
      const mixed = await readFile(await mix.path())
      expect(Math.abs(mixed.length - 44 - 2 * rate * 4)).toBeLessThan(rate)
      expect(mixed.subarray(44).some((byte) => byte !== 0)).toBe(true)
    })

    test('shows the level of each stem while it sounds, and the master volume is that of all', async () => {
      const page = await pages.listening(2048)
      await player(page)
      const level = (stem: string) =>
        page
          .getByRole('region', { name: stem })
          .locator('.meter')
          .evaluate((meter: { style: { getPropertyValue(name: string): string } }) =>
            Number(meter.style.getPropertyValue('--level')),
          )
      const loudness = () => heardPeak(page)
      expect([await level('Vocals'), await level('Accompaniment')]).toEqual([0, 0])
      await page.getByRole('button', { name: 'Play', exact: true }).click()
      await eventually(() => level('Accompaniment')).toBeGreaterThan(0.05)
      await eventually(loudness).toBeGreaterThan(0.05)
      // The meter of a muted stem is at rest; so are all meters while the music is paused.
      await page.getByRole('button', { name: 'Mute Accompaniment' }).click()
      await eventually(() => level('Accompaniment')).toBeLessThan(0.001)
      await page.getByRole('button', { name: 'Mute Accompaniment' }).click()
      await page.getByRole('slider', { name: 'Master volume' }).fill('0')
      await eventually(loudness).toBeLessThan(0.001)
      await eventually(() => level('Accompaniment')).toBeGreaterThan(0.05)
      await page.getByRole('slider', { name: 'Master volume' }).fill('100')
      await eventually(loudness).toBeGreaterThan(0.05)
      await page.getByRole('button', { name: 'Pause' }).click()
      await eventually(() => level('Accompaniment')).toBe(0)
    })

    test('zooms the lanes together and shows spectrograms on request', async () => {
      const page = await pages.signedIn()
      await player(page)
      await page.getByRole('button', { name: 'Zoom in' }).click()
      await page.getByRole('button', { name: 'Zoom in' }).click()
      await eventually(() => page.locator('.tick').allInnerTexts()).toContain('0:00.5')
      await page.getByRole('button', { name: 'Zoom out' }).click()
      await page.getByRole('button', { name: 'Zoom out' }).click()
      await page.getByLabel('Spectrogram', { exact: true }).check({ force: true })
      const picture = page.getByRole('img', { name: 'Spectrogram of Accompaniment' })
      const brightness = () =>
        picture.evaluate((canvas: Canvas) =>
          [...canvas.getContext('2d').getImageData(479, 0, 1, 160).data].reduce((sum, value) => sum + value, 0),
        )
      // The alpha of opaque pixels alone sums to 160 x 255.
      await eventually(brightness).toBeGreaterThan(160 * 255 * 1.3)
    })

    test('works with the keyboard alone, and the focus is never lost', async () => {
      const page = await pages.open()
      // Requested early: the browser takes a moment to provide the dialogue.
      const chooser = page.waitForEvent('filechooser')
      // The key field already has the focus.
      await focused(page.getByLabel('API key'))
      await page.keyboard.type(service.key)
      await page.keyboard.press('Enter')
      const choose = page.getByRole('button', { name: 'Choose songs' })
      await choose.waitFor()
      for (let presses = 0; presses < 12 && !(await hasFocus(choose)); presses++) await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await (await chooser).setFiles(path('short song.wav'))
      await openSong(page, 'short song.wav')
      const heading = page.getByRole('heading', { name: 'short song.wav', level: 1 })
      await focused(heading)
      await page.getByRole('button', { name: 'Snap loops', disabled: false }).press('Enter')
      await heading.focus()
      const time = () => page.locator('.transport .figure').innerText()

      const steps: [key: string, time: string][] = [
        ['ArrowRight', '0:05 / 0:08'],
        ['Home', '0:00 / 0:08'],
        ['End', '0:08 / 0:08'],
        ['ArrowLeft', '0:03 / 0:08'],
      ]
      for (const [key, after] of steps) {
        await page.keyboard.press(key)
        await eventually(time).toBe(after)
      }
      await page.keyboard.press('[')
      await page.getByText('Loop 0:03 to 0:08').waitFor()
      await page.keyboard.press('l')
      await page.getByText('Drag across a waveform to loop a part.').waitFor()
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
      await page.keyboard.press('>')
      await eventually(() => page.getByLabel('Tempo').inputValue()).toBe('105')

      await page.getByRole('button', { name: 'Delete short song.wav' }).focus()
      await page.keyboard.press('Enter')
      await focused(page.getByRole('heading', { name: 'Separate a song' }))
    })

    test('can undo one or many deletions, and deletes when the time for undoing is over', async () => {
      const page = await pages.signedIn()
      await send(page, path(longName), path('damaged.mp3'))
      await rowOf(page, 'A very long name').locator('.status.succeeded').waitFor()
      await rowOf(page, 'damaged.mp3').locator('.status.failed').waitFor()
      const count = await page.locator('.rows li').count()
      await rowOf(page, 'damaged.mp3').getByRole('button', { name: 'Delete damaged.mp3' }).click()
      await eventually(() => page.locator('.rows li').count()).toBe(count - 1)
      expect(await page.evaluate('document.activeElement.tagName')).not.toBe('BODY')
      await page.getByRole('button', { name: 'Undo' }).click()
      await eventually(() => page.locator('.rows li').count()).toBe(count)

      await rowOf(page, 'damaged.mp3').getByRole('checkbox').check()
      await rowOf(page, 'A very long name').getByRole('checkbox').check()
      const archive = await downloaded(page.getByRole('button', { name: 'Download (ZIP)' }))
      expect(archive.suggestedFilename()).toMatch(/^A very long name .* - stems\.zip$/)
      await page.getByRole('button', { name: 'Delete', exact: true }).click()
      await eventually(() => page.locator('.rows li').count()).toBe(count - 2)
      // Leaving the page ends the time to undo the deletion.
      await page.reload()
      await page.getByText('Connected', { exact: true }).waitFor()
      await eventually(() => page.locator('.rows li').count()).toBe(count - 2)
    })

    test('offers the available formats, sends the chosen one, keeps filters and search in the address', async () => {
      const page = await pages.signedIn()
      await page.getByText('Options').click()
      const format = page.getByLabel('Format')
      await eventually(() => format.locator('option').allInnerTexts()).toEqual([
        'WAV 16-bit (default)',
        'WAV 24-bit',
        'WAV 32-bit float',
        'FLAC 16-bit',
        'FLAC 24-bit',
        'MP3 320 kbit/s',
        'AIFF 16-bit',
        'AIFF 24-bit',
        'AIFF 32-bit float',
      ])
      await format.selectOption('FLAC 16-bit')
      await page.getByLabel('Batch').fill('Night run')
      expect(await barriers(page)).toEqual([])
      await send(page, path('short song.wav'))
      await rowOf(page, 'Night run').locator('.status.succeeded').waitFor()
      await page.getByRole('link', { name: 'Night run' }).click()
      await eventually(() => page.locator('.rows li').count()).toBe(1)
      const asked: string[] = []
      page.on('request', (request) => {
        const search = new URL(request.url()).searchParams.get('search')
        if (search !== null) asked.push(search)
      })
      // Letter by letter, faster than anyone types: one request, after the last letter.
      await page
        .getByRole('searchbox', { name: 'Search by name' })
        .evaluate((field: EventTarget & { value: string }) => {
          for (let length = 1; length <= 'SÓNG short'.length; length++) {
            field.value = 'SÓNG short'.slice(0, length)
            field.dispatchEvent(new Event('input', { bubbles: true }))
          }
        })
      await eventually(() => asked).toEqual(['SÓNG short'])
      await eventually(() => page.locator('.rows li').count()).toBe(1)
      // A song sent meanwhile is found, too.
      await send(page, path('short song.wav'))
      await eventually(() => page.locator('.rows li[data-job]').count()).toBe(2)
      await page.reload()
      expect(new URL(page.url()).hash).toBe('#/?batch=Night+run&search=S%C3%93NG+short')
      await eventually(() => page.locator('.rows li').allInnerTexts()).toEqual(
        Array(2).fill(expect.stringContaining('Night run')),
      )
      await page.getByRole('searchbox', { name: 'Search by name' }).fill('nothing like it')
      await page.getByText('No songs match.').waitFor()
      await page.goBack()
      await openSong(page, 'short song.wav')
      await page.getByRole('link', { name: /^Vocals FLAC/ }).waitFor()
      await page.getByRole('button', { name: 'Play', exact: true }).click()
      await eventually(() => position(page)).toBeGreaterThan(0.3)
    })

    test('says in plain words that a key is wrong or that a file is not a song', async () => {
      const page = await pages.open()
      await page.getByLabel('API key').fill('a-key-that-nobody-made')
      await page.getByRole('button', { name: 'Continue' }).click()
      expect(await page.getByRole('alert').innerText()).toContain('This key is not valid')
      await page.getByLabel('API key').fill(service.key)
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByText('Connected', { exact: true }).waitFor()
      await send(page, path('damaged.mp3'))
      const row = rowOf(page, 'damaged.mp3')
      await row.locator('.status.failed').waitFor()
      expect(await row.innerText()).toContain('This file is not audio that the service can read')
      await page.getByLabel('Failed', { exact: true }).check({ force: true })
      await eventually(() => page.locator('.rows li .status.succeeded').count()).toBe(0)
      expect(new URL(page.url()).hash).toBe('#/?status=FAILED')
    })

    test('separates a song again from the stored upload, and requests the file once that is gone', async () => {
      const page = await pages.signedIn()
      await send(page, path('short song.wav'))
      await openSong(page, 'short song.wav')
      const rows = async () => {
        await page.goto(`${service.base}/console`)
        await rowOf(page, 'short song.wav').waitFor()
        return await page.locator('.rows li').count()
      }
      const before = await rows()
      const again = async () => {
        await openSong(page, 'short song.wav')
        await page.getByRole('button', { name: 'Send again: short song.wav' }).click()
      }
      await again()
      await page.getByRole('region', { name: 'Messages' }).getByText('Sent again.').waitFor()
      expect(await rows()).toBe(before + 1)
      await rm(join(path('data'), 'blobs', 'uploads'), { recursive: true })
      // After a reload, the page has no file to send.
      await page.reload()
      await again()
      const chooser = page.waitForEvent('filechooser')
      await page.getByRole('button', { name: 'Choose file' }).click()
      await (await chooser).setFiles(path('short song.wav'))
      await page.evaluate("location.hash = '#/'")
      await eventually(() => page.locator('.rows li').count()).toBe(before + 2)
    })

    test('follows a job after a reload, plays what is finished, shows the time left, and stops it', async () => {
      const page = await pages.signedIn()
      await send(page, path('long song.wav'))
      await rowOf(page, 'long song.wav').locator('.status.started').waitFor()
      await rowOf(page, 'long song.wav').getByRole('link', { name: 'long song.wav' }).click()
      const bar = page.getByRole('progressbar', { name: 'Progress' })
      const progress = () => bar.evaluate((element: { value: number }) => element.value)
      await eventually(progress).toBeGreaterThan(0.01)
      await page.getByRole('button', { name: 'Play', exact: true }).click()
      await eventually(() => position(page)).toBeGreaterThan(0.3)
      expect(await barriers(page)).toEqual([])
      await page.reload()
      await page.getByRole('heading', { name: 'long song.wav' }).waitFor()
      const atReload = await progress()
      await eventually(progress).toBeGreaterThan(atReload)
      await page.getByText(/seconds left|a minute left|minutes left/).waitFor()
      await page.getByRole('button', { name: 'Stop long song.wav' }).click()
      await page.getByText('This job was stopped.').waitFor()
    })

    test('continues an upload and its updates after a lost connection', async () => {
      const page = await pages.signedIn()
      // The page contains only the rows in view.
      const songs = async () => Number.parseInt(await page.getByText(/^\d+ songs?$/).innerText(), 10)
      const before = await songs()
      await page.context().setOffline(true)
      await page.getByText('Reconnecting', { exact: true }).waitFor()
      await send(page, path('short song.wav'))
      await page.getByText('Connection lost. Trying again.').waitFor()
      expect(await barriers(page)).toEqual([])
      await page.context().setOffline(false)
      await page.getByText('Connected', { exact: true }).waitFor()
      await rowOf(page, 'short song.wav').locator('.status.succeeded').waitFor()
      await eventually(songs).toBe(before + 1)
    })

    test('keeps the key where no script can read it, on the device if asked, until the user signs out', async () => {
      const page = await pages.open()
      await page.getByLabel('API key').fill(service.key)
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByText('Connected', { exact: true }).waitFor()
      const readable = () =>
        page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])')
      const kept = async () => (await page.context().cookies()).map(({ path, expires }) => [path, expires > 0])
      expect([await readable(), await kept()]).toEqual(['[{},{},""]', [['/v1', false]]])
      await page.getByRole('link', { name: 'API keys' }).click()
      await page.getByLabel('Stay signed in on this device').check()
      await eventually(kept).toEqual([['/v1', true]])
      const other = await page.context().newPage()
      await other.goto(`${service.base}/console#/keys`)
      await other.getByText('Connected', { exact: true }).waitFor()
      expect(await other.getByLabel('Stay signed in on this device').isChecked()).toBe(true)
      await page.getByRole('button', { name: 'Sign out' }).click()
      await other.getByLabel('API key').waitFor()
      await page.reload()
      await page.getByLabel('API key').waitFor()
      expect([await readable(), await kept()]).toEqual(['[{},{},""]', []])
    })

    test('creates, lists and revokes keys while the service runs', async () => {
      const page = await pages.signedIn()
      await page.getByRole('link', { name: 'API keys' }).click()
      await page.getByLabel('Name of the key').fill('Studio')
      await page.getByRole('button', { name: 'Create key' }).click()
      const key = await page.getByRole('region', { name: 'The new key' }).locator('pre').innerText()
      expect(await barriers(page)).toEqual([])
      const answer = () => fetch(`${service.base}/application`, { headers: { authorization: key } })
      const stranger = await pages.entered({}, key)
      await stranger.getByText('Connected', { exact: true }).waitFor()

      await page.getByRole('button', { name: 'Revoke Studio' }).click()
      const question = page.getByRole('dialog', { name: 'Revoke Studio?' })
      expect(await barriers(page)).toEqual([])
      await question.getByRole('button', { name: 'Back' }).click()
      expect((await answer()).status).toBe(200)
      await page.getByRole('button', { name: 'Revoke Studio' }).click()
      await question.getByRole('button', { name: 'Revoke key' }).click()
      await eventually(() => page.getByRole('button', { name: 'Revoke Studio' }).count()).toBe(0)
      // A revoked key is not offered for copying.
      expect(await page.getByRole('region', { name: 'The new key' }).count()).toBe(0)
      expect((await answer()).status).toBe(401)
      await stranger.getByText('Your key no longer works').waitFor()
    })

    test('shows measurements as figures and as a picture', async () => {
      const page = await pages.signedIn()
      await page.getByLabel('Workflow').selectOption('Loudness')
      await send(page, path('short song.wav'))
      await rowOf(page, 'Loudness').locator('.status.succeeded').waitFor()
      await rowOf(page, 'Loudness').getByRole('link', { name: 'short song.wav' }).click()
      const figures = page.getByRole('region', { name: 'Figures' })
      expect(await figures.innerText()).toMatch(/Integrated loudness\s+−\d+\.\d LUFS\s+True peak\s+−?\d+\.\d dBTP/)
      const picture = figures.getByRole('img', { name: 'Loudness over time' })
      await eventually(() => picture.evaluate((image: { naturalWidth: number }) => image.naturalWidth)).toBeGreaterThan(
        0,
      )
      expect(await barriers(page)).toEqual([])
      await page.getByRole('link', { name: 'Details' }).click()
      await page.getByText('Loudest 3 s').waitFor()
    })

    test('shows the history of a job and how to submit it from a program', async () => {
      const page = await pages.signedIn()
      await player(page)
      await page.getByRole('link', { name: 'Details' }).click()
      await page.getByRole('heading', { name: 'Timeline' }).waitFor()
      const text = await page.locator('.details').innerText()
      for (const fact of [
        'Model hash (SHA-256)',
        'network',
        'Clipped samples',
        'stemwork models pull recommended',
        'an uploaded file',
        'short song - vocals.wav',
        'these add up to more than the job took',
      ])
        expect(text).toContain(fact)
      expect(text).not.toContain('signature=')
      expect(text).toContain(`${service.base}/job -d`)
      await page.getByLabel('JavaScript', { exact: true }).check({ force: true })
      expect(await page.locator('.details pre').innerText()).toContain(`baseUrl: '${service.base}'`)
    })
  },
)
