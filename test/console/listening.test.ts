import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Locator, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { createClient } from '../../src/client/client.js'
import { noise, sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, startConsole } from './browser.js'
import {
  barriers,
  ConsolePages,
  downloaded,
  eventually,
  layoutShift,
  openSong,
  patienceMs,
  phone,
  rowOf,
  send,
  tidyUp,
  position,
} from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 44_100

vi.setConfig({ testTimeout: 3 * patienceMs, hookTimeout: 3 * patienceMs })

describe.skipIf(!chromiumPath)('listening with mouse and keyboard (needs Chromium)', () => {
  let service: ConsoleService
  let browser: Browser
  const folder = temporaryFolder()
  let pages: ConsolePages

  beforeAll(async () => {
    await writeWav(join(folder, 'song.wav'), [sine(8 * rate, 440, rate, 0.4), noise(8 * rate)], rate, '16')
    await writeFile(join(folder, 'damaged.mp3'), Buffer.alloc(3000, 1))
    ;[service, browser] = await Promise.all([startConsole({ data: join(folder, 'data') }), openBrowser()])
    pages = new ConsolePages(browser, service)
    const page = await pages.signedIn()
    await send(page, join(folder, 'song.wav'), join(folder, 'damaged.mp3'))
    await openSong(page, 'song.wav')
    await page.goto(`${service.base}/console`)
    await rowOf(page, 'damaged.mp3').locator('.status.failed').waitFor()
    await page.context().close()
  })
  tidyUp(() => ({ browser, service }))

  async function player(): Promise<Page> {
    const page = await pages.signedIn({ viewport: { width: 1280, height: 900 } })
    await openSong(page, 'song.wav')
    return page
  }

  /** Clicks with the real mouse at the target's visible place. */
  async function click(page: Page, target: Locator, share = 0.5): Promise<void> {
    const { x, y, width, height } = (await target.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }
    await page.mouse.click(x + share * width, y + height / 2)
  }
  const isPressed = (page: Page, name: string) => page.getByRole('button', { name }).getAttribute('aria-pressed')

  test("the player's keys work after a click on any part of it, and nothing moves", async () => {
    const page = await player()
    // A slow device, on which a frame during playback takes long.
    const session = await page.context().newCDPSession(page)
    await session.send('Emulation.setCPUThrottlingRate', { rate: 6 })
    const shift = await layoutShift(page)
    const top = async () => (await page.locator('.lanes').boundingBox())?.y
    const before = await top()
    for (const choice of ['Spectrogram', 'Original', 'Waveform', 'Mix']) {
      await click(page, page.locator('.segments label').filter({ hasText: choice }))
      await eventually(() => page.getByLabel(choice, { exact: true }).isChecked()).toBe(true)
      expect(await top()).toBe(before)
      await page.keyboard.press('Space')
      await page.getByRole('button', { name: 'Pause' }).waitFor()
      await page.keyboard.press('Space')
      await page.getByRole('button', { name: 'Play', exact: true }).waitFor()
    }
    await page.keyboard.press('1')
    await eventually(() => isPressed(page, 'Mute Vocals')).toBe('true')
    expect(await shift()).toBe(0)
    await click(page, page.getByRole('slider', { name: 'Tempo' }), 0.25)
    await eventually(() => page.getByRole('slider', { name: 'Tempo' }).inputValue()).not.toBe('100')
    await page.keyboard.press('[')
    await page.getByText(/^Loop 0:0/).waitFor()
    await page.keyboard.press('l')
    await page.getByText('Drag across a waveform to loop a part.').waitFor()
    await page.keyboard.press('Space')
    await page.getByRole('button', { name: 'Pause' }).waitFor()
  })

  test('keys scroll the details, and leave the hidden player alone', async () => {
    const page = await player()
    await page.getByRole('link', { name: 'Details' }).click()
    await page.getByRole('heading', { name: 'Timeline' }).click()
    for (const key of ['ArrowDown', 'ArrowDown', 'End', '1']) await page.keyboard.press(key)
    await eventually(() => page.evaluate<number>('scrollY')).toBeGreaterThan(100)
    await page.getByRole('link', { name: 'Player' }).click()
    expect(await page.getByRole('slider', { name: 'Master volume' }).inputValue()).toBe('100')
    expect([await isPressed(page, 'Mute Vocals'), await position(page)]).toEqual(['false', 0])
  })

  test('a lane beyond the ninth shows no key, because none mutes it', async () => {
    const page = await pages.signedIn({ viewport: { width: 1280, height: 900 } })
    await page.route(/[/]job[/][0-9a-f-]{36}$/, async (route) => {
      const response = await route.fetch()
      const job = (await response.json()) as { result: { vocals: string }; files: { vocals: object } }
      const ofAll = <One>(one: One) => Object.fromEntries(Array.from({ length: 11 }, (_, at) => [`stem${at + 1}`, one]))
      const json = { ...job, result: ofAll(job.result.vocals), files: ofAll(job.files.vocals) }
      await route.fulfill({ response, json })
    })
    await openSong(page, 'song.wav')
    const lanes = page.locator('.lane h2')
    await eventually(() => lanes.allInnerTexts()).toHaveLength(11)
    const ends = (await lanes.allInnerTexts()).map((text) => text.split(/\s+/).at(-1))
    expect(ends.slice(7)).toEqual(['8', '9', 'Stem10', 'Stem11'])
  })

  test('on a narrow phone, no button covers the name of a stem', async () => {
    const page = await pages.signedIn(phone)
    await openSong(page, 'song.wav')
    for (let width = 320; width <= 420; width += 20) {
      await page.setViewportSize({ width, height: 700 })
      const over = `[...document.querySelectorAll('.lane h2')].filter((h) => h.scrollWidth > h.clientWidth).length`
      expect(await page.evaluate(over), `${width} px`).toBe(0)
    }
  })

  test('a finger that begins to drag and then scrolls the page leaves no loop', async () => {
    const page = await pages.signedIn(phone)
    await openSong(page, 'song.wav')
    const slider = await page.getByRole('slider', { name: 'Position' }).boundingBox()
    expect(slider?.width, 'wide enough for a finger to meet a second').toBeGreaterThan(300)
    const lane = page.locator('.picture').first()
    await lane.scrollIntoViewIfNeeded()
    const { x, y, height } = (await lane.boundingBox()) ?? { x: 0, y: 0, height: 0 }
    const session = await page.context().newCDPSession(page)
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', right = 0, up = 0) => {
      const touchPoints = type === 'touchEnd' ? [] : [{ x: x + 60 + right, y: y + height / 2 - up }]
      return session.send('Input.dispatchTouchEvent', { type, touchPoints })
    }
    await page.evaluate(`addEventListener('pointercancel', () => (window.isCanceled = true))`)
    const loop = () => page.evaluate<string>(`document.querySelector('.lanes').style.cssText`)
    const before = await loop()
    await touch('touchStart')
    await touch('touchMove', 7, 2)
    await touch('touchMove', 9, 8)
    for (let step = 1; step <= 12; step++) await touch('touchMove', 10 + step, 10 + 9 * step)
    await touch('touchEnd')
    await eventually(() => page.evaluate('window.isCanceled')).toBe(true)
    expect(await loop()).toBe(before)
  })

  test('in forced colours, the choices, the pressed buttons, the position and menus can still be seen', async () => {
    const page = await player()
    await page.emulateMedia({ forcedColors: 'active' })
    await page.getByRole('button', { name: 'Mute Vocals' }).click()
    const style = (selector: string, property: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).${property}`)
    const ground = await style('html', 'backgroundColor')
    expect(await style('.mixer [aria-pressed=true]', 'backgroundColor')).not.toBe(ground)
    expect(await style('.mixer .playhead', 'backgroundColor')).not.toBe(ground)
    expect(await style('.segments :checked + span', 'outline')).toBe(`${await style('html', 'color')} solid 3px`)
    expect(await style('.segments :not(:checked) + span', 'outlineStyle')).toBe('none')
    expect(await style('.mixer select', 'appearance'), 'the arrow is drawn by the browser').toBe('auto')
  })

  test('while it plays, only visible changes update the page, and a hidden page updates nothing', async () => {
    const page = await player()
    // All waveforms are drawn.
    await eventually(() => page.locator('.drawing').count()).toBe(0)
    await page.getByRole('button', { name: 'Play', exact: true }).click()
    await eventually(() => position(page)).toBeGreaterThan(0.3)
    /** Number of writes to each element until the given position of the song, by class and written attribute. */
    const writtenUntil = (seconds: number) =>
      page.evaluate<Record<string, number>>(`new Promise((resolve) => {
        const times = {}
        const watcher = new MutationObserver((changes) => {
          for (const { target, attributeName } of changes) {
            const name = target.className + ' ' + (attributeName ?? 'text')
            times[name] = (times[name] ?? 0) + 1
          }
          if (document.querySelector('.seek').value >= ${seconds}) resolve(times)
        })
        watcher.observe(document.querySelector('.mixer'), { subtree: true, attributes: true, childList: true })
      })`)
    const written = await writtenUntil(4)
    const seen = [' text', 'meter style', 'played style', 'playhead style', 'seek aria-valuetext']
    expect(seen).toEqual(expect.arrayContaining(Object.keys(written)))
    // The player's clock, as text and for screen readers.
    for (const name of [' text', 'seek aria-valuetext']) expect(written[name] ?? 0).toBeLessThanOrEqual(4)
    // Above its two lanes are the scale and the chords: four playheads in at most 30 pictures a second.
    expect(written['playhead style'] ?? 0).toBeLessThanOrEqual(4 * 30 * 4)
    // Playheads are at whole pixels of the screen.
    const pixels = await page.locator('.playhead').evaluateAll((all) =>
      (
        all as unknown as {
          style: { getPropertyValue(name: string): string }
          parentElement: { clientWidth: number }
        }[]
      ).map(({ style, parentElement }) => Number(style.getPropertyValue('--played')) * parentElement.clientWidth),
    )
    for (const at of pixels) expect(Math.abs(at - Math.round(at))).toBeLessThan(1e-6)
    // The page is hidden behind another one.
    const [before, after] = await page.evaluate<[number, number]>(`new Promise((resolve) => {
      Object.defineProperty(document, 'hidden', { value: true })
      const position = () => document.querySelector('.seek').value
      setTimeout(() => {
        const before = position()
        setTimeout(() => resolve([before, position()]), 300)
      }, 300)
    })`)
    expect(after).toBe(before)
  })

  test('with the keyboard, the focus stays on a choice, so that the arrow keys keep working', async () => {
    const page = await player()
    await page.getByLabel('Waveform', { exact: true }).focus()
    await page.keyboard.press('ArrowRight')
    await eventually(() => page.getByLabel('Spectrogram', { exact: true }).isChecked()).toBe(true)
    await page.keyboard.press('ArrowLeft')
    await eventually(() => page.getByLabel('Waveform', { exact: true }).isChecked()).toBe(true)
    await page.keyboard.press('Space')
    await page.getByRole('button', { name: 'Pause' }).waitFor()
  })

  test('while the original plays, nothing is shown as muted; muting there works, and the mix is kept', async () => {
    const page = await player()
    await page.getByRole('button', { name: 'Mute Vocals' }).click()
    await click(page, page.locator('.segments label').filter({ hasText: 'Original' }))
    await eventually(() => isPressed(page, 'Mute Vocals')).toBe('false')
    await page.keyboard.press('o')
    await eventually(() => isPressed(page, 'Mute Vocals')).toBe('true')
    await page.keyboard.press('o')
    await page.getByRole('button', { name: 'Mute Accompaniment' }).click()
    await eventually(() => isPressed(page, 'Mute Accompaniment')).toBe('true')
    expect(await page.getByLabel('Mix', { exact: true }).isChecked()).toBe(true)
  })

  test('a part of the page that cannot be loaded is explained by the connection, and works later', async () => {
    const page = await player()
    await page.route('**/export-mix.js', (route) => route.abort())
    await page.getByRole('button', { name: 'Export this mix' }).click()
    await page.getByText('The service cannot be reached. Check your connection and try again.').first().waitFor()
    await page.unrouteAll()
    await downloaded(page.getByRole('button', { name: 'Export this mix' }))
  })

  test('a click outside the loop seeks to that position', async () => {
    const page = await player()
    await page.getByRole('button', { name: 'Snap loops' }).click()
    const picture = page.getByRole('region', { name: 'Vocals', exact: true }).locator('.picture')
    const { x, y, width } = (await picture.boundingBox()) ?? { x: 0, y: 0, width: 0 }
    await page.mouse.move(x + width / 4, y + 20)
    await page.mouse.down()
    await page.mouse.move(x + width / 2, y + 20, { steps: 4 })
    await page.mouse.up()
    await page.getByText('Loop 0:02 to 0:04').waitFor()
    await click(page, picture, 0.75)
    await page.keyboard.press('Space')
    await eventually(() => position(page)).toBeGreaterThan(6.2)
  })

  test('a spectrogram labels its frequencies, and is still dark for a muted stem', async () => {
    const page = await player()
    await click(page, page.locator('.segments label').filter({ hasText: 'Spectrogram' }))
    const lane = page.getByRole('region', { name: 'Vocals', exact: true })
    expect(await lane.locator('.frequency').allInnerTexts()).toEqual(['100 Hz', '1 kHz', '10 kHz'])
    await page.keyboard.press('1')
    const opacity = () =>
      lane.locator('.picture').evaluate((picture: object) => {
        const { getComputedStyle } = globalThis as unknown as { getComputedStyle(of: object): { opacity: string } }
        return getComputedStyle(picture).opacity
      })
    await eventually(() => lane.getAttribute('class')).toContain('silent')
    await eventually(opacity).toBe('1')
  })

  test('a file that can never work cannot be sent again', async () => {
    const page = await pages.signedIn()
    const row = rowOf(page, 'damaged.mp3')
    await row.getByRole('button', { name: 'Delete damaged.mp3' }).waitFor()
    expect(await row.getByRole('button', { name: /Send again/ }).count()).toBe(0)
    await row.getByRole('link', { name: 'damaged.mp3' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('button', { name: /Send again/ }).count()).toBe(0)
  })

  test('uploads are listed in the order that the songs will have', async () => {
    const page = await pages.signedIn()
    await page.route('**/upload', () => undefined)
    await page
      .locator('input[type=file]')
      .first()
      .setInputFiles(
        ['first', 'second', 'third'].map((name) => ({
          name: `${name}.mp3`,
          mimeType: 'audio/mpeg',
          buffer: Buffer.alloc(3000, 1),
        })),
      )
    await eventually(() => page.locator('.rows .upload .name').allInnerTexts()).toEqual([
      'third.mp3',
      'second.mp3',
      'first.mp3',
    ])
  })

  test('the list of workflows is loaded again after a failed request', async () => {
    const page = await pages.arriving()
    let failures = 0
    await page.route('**/workflow', (route) => {
      if (failures++ > 0) return route.continue()
      return route.abort()
    })
    await page.goto(`${service.base}/console`)
    await page.getByRole('combobox', { name: 'Workflow' }).first().waitFor()
    expect(failures).toBeGreaterThan(1)
  })

  test('a first visit logs no error', async () => {
    const page = await (await browser.newContext()).newPage()
    const errors: string[] = []
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
    await page.goto(`${service.base}/console`)
    await page.getByLabel('API key').waitFor()
    expect(errors).toEqual([])
  })

  test('a link opens one song without a key, until it is revoked or has expired', async () => {
    const page = await player()
    await page.getByText('Share this song').click()
    await page.getByRole('button', { name: 'Create link' }).click()
    const links = page.getByRole('list', { name: 'Links' })
    const link = await links.locator('code').innerText()
    await links.getByText('Not opened yet').waitFor()
    expect(await barriers(page)).toEqual([])

    const guest = await pages.open({}, '/console/icon.svg')
    await guest.goto(link)
    await guest.getByRole('region', { name: 'Listen' }).waitFor()
    await guest.getByRole('button', { name: 'Play', exact: true }).click()
    await eventually(() => position(guest)).toBeGreaterThan(0.3)
    await guest.getByRole('button', { name: 'Pause' }).click()
    expect([await guest.context().cookies(), await barriers(guest)]).toEqual([[], []])
    const saved = await downloaded(guest.getByRole('link', { name: /^Vocals WAV/ }))
    expect(saved.suggestedFilename()).toContain('vocals')
    // No link on the page leads to anything that the share link does not open.
    expect(await guest.getByRole('link', { name: /songs|Details|API keys|Library/ }).count()).toBe(0)
    expect(await guest.getByRole('button', { name: /Delete|ZIP|Share/ }).count()).toBe(0)
    await guest.goto(`${service.base}/console#/`)
    await guest.getByLabel('API key').waitFor()

    await page.reload()
    await page.getByText('Share this song').click()
    await links.getByText('Opened once').waitFor()
    await links.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('button', { name: 'Revoke link' }).click()
    await links.locator('li').waitFor({ state: 'detached' })
    await guest.goto(link)
    await guest.getByText('This link was revoked by whoever sent it.').first().waitFor()
    expect(await guest.getByRole('region', { name: 'Listen' }).count()).toBe(0)

    const id = /#job=([^/]+)/.exec(link)?.[1] ?? ''
    const client = createClient({ baseUrl: service.base, apiKey: service.key })
    const { url } = await client.createJobLink(id, { expiresInSeconds: 1 })
    const authorization = `job-link ${new URL(url).hash.slice('#job='.length)}`
    const asked = () => fetch(`${service.base}/job/${id}/status`, { headers: { authorization } })
    await eventually(async () => (await asked()).status).toBe(403)
    await guest.goto(url)
    await guest.getByText('This link has expired.').first().waitFor()
    // The browser's log of the refusals.
    expect(pages.complaints.splice(0)).toEqual([410, 403].map((status) => expect.stringContaining(` ${status} (`)))
  })
})

describe.skipIf(!chromiumPath)('on a plain http address in the network (needs Chromium)', () => {
  test('a key and its link are copied, and the link is a picture that a phone can scan', async () => {
    const [service, browser] = await Promise.all([
      startConsole(),
      openBrowser('--host-resolver-rules=MAP stems.lan 127.0.0.1'),
    ])
    try {
      const base = service.base.replace(/127\.0\.0\.1|localhost/, 'stems.lan')
      const pages = new ConsolePages(browser, { base, key: service.key })
      const page = await pages.open()
      expect(await page.evaluate('[isSecureContext, typeof navigator.clipboard]')).toEqual([false, 'undefined'])
      await page.getByLabel('API key').fill(service.key)
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('link', { name: 'API keys' }).click()
      await page.getByRole('button', { name: 'Create key' }).click()
      const card = page.getByRole('region', { name: 'The new key' })
      await card.getByRole('button', { name: 'Copy key' }).click()
      await page.getByText('Copied', { exact: true }).first().waitFor()
      expect(await page.evaluate('getSelection().toString()')).toBe(await card.locator('pre').first().innerText())
      await card.getByRole('button', { name: 'Copy sign-in link' }).click()
      await card.getByText(`${base}/console#code=`).waitFor()
      const picture = card.getByRole('img', { name: 'The sign-in link as a QR code' })
      await eventually(() => picture.evaluate((canvas: { width: number }) => canvas.width)).toBeGreaterThan(100)
      // Where copying is forbidden, too, the page says what to do.
      await page.evaluate('document.execCommand = () => false')
      await card.getByRole('button', { name: 'Copy key' }).click()
      await page.getByText('It is selected: press Ctrl+C').first().waitFor()
      // The program in a job's details likewise.
      await page.reload()
      await page.getByRole('link', { name: 'Library' }).click()
      const mimeType = 'audio/mpeg'
      await page
        .locator('input[type=file]')
        .setInputFiles({ name: 'no song.mp3', mimeType, buffer: Buffer.alloc(3000, 1) })
      await rowOf(page, 'no song.mp3').locator('.status.failed').waitFor()
      await rowOf(page, 'no song.mp3').getByRole('link', { name: 'no song.mp3' }).click()
      await page.getByRole('link', { name: 'Details' }).click()
      await page.getByRole('button', { name: 'Copy', exact: true }).click()
      await page.getByText('Copied', { exact: true }).first().waitFor()
      expect(await page.evaluate('getSelection().toString()')).toBe(await page.locator('.details pre').innerText())
      expect(pages.complaints).toEqual([])
    } finally {
      await browser.close()
      await service.stop()
    }
  })
})
