import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { readAudio, sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, startConsole } from './browser.js'
import {
  barriers,
  type Canvas,
  ConsolePages,
  downloaded,
  eventually,
  openSong,
  patienceMs,
  send,
  tidyUp,
  position,
  heardPeak,
} from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 44_100
const hertz = 440
const beatsPerSecond = 2

vi.setConfig({ testTimeout: 3 * patienceMs, hookTimeout: 3 * patienceMs })

describe.skipIf(!chromiumPath)('practising (needs Chromium)', () => {
  let service: ConsoleService
  let browser: Browser
  const folder = temporaryFolder()
  let pages: ConsolePages

  beforeAll(async () => {
    // A tone, and two drum hits a second.
    const tone = sine(12 * rate, hertz, rate, 0.4).map((value, i) => {
      const time = (i / rate) % (1 / beatsPerSecond)
      return value + 0.3 * Math.cos(2 * Math.PI * 70 * time) * Math.exp(-time / 0.06)
    })
    await writeWav(join(folder, 'song.wav'), [tone, tone], rate, '16')
    // A square wave at full scale: at another pitch, the sum of its parts exceeds it. First an A with its third and
    // fifth, then a D.
    const square = Float32Array.from({ length: 6 * rate }, (_, i) => {
      const period = i < 3 * rate ? 200 : 150
      return i % period < period / 2 ? 0.98 : -0.98
    })
    const tags = { title: 'Harbour', artist: 'The Keel' }
    const loud = await openEncoder(join(folder, 'loud.wav'), { sampleRate: rate, channels: 2, format: '16', tags })
    await loud.write([square, square])
    await loud.close()
    ;[service, browser] = await Promise.all([
      startConsole({ data: join(folder, 'data') }),
      openBrowser('--host-resolver-rules=MAP stems.lan 127.0.0.1'),
    ])
    pages = new ConsolePages(browser, service)
    const page = await pages.signedIn()
    await send(page, join(folder, 'loud.wav'))
    await page.getByText('Options').click()
    await page.getByLabel('Tempo, key and beats').uncheck()
    await send(page, join(folder, 'song.wav'))
    await openSong(page, 'song.wav')
    await page.context().close()
  })
  tidyUp(() => ({ browser, service }))

  async function player(song = 'song.wav'): Promise<Page> {
    const page = await pages.listening()
    await openSong(page, song)
    return page
  }
  const play = (page: Page) => page.getByRole('button', { name: 'Play', exact: true }).click()
  /** The strongest frequency in the output. */
  const pitch = (page: Page) =>
    page.evaluate<number>(`(() => {
      const bins = new Float32Array(speaker.frequencyBinCount)
      speaker.getFloatFrequencyData(bins)
      return (bins.indexOf(Math.max(...bins)) * clock.sampleRate) / speaker.fftSize
    })()`)

  /** Seconds of the song per second of the clock. */
  async function tempo(page: Page): Promise<number> {
    const both = () => page.evaluate<[number, number]>("[clock.currentTime, +document.querySelector('.seek').value]")
    await eventually(() => position(page)).toBeGreaterThan(0.5)
    const [at, from] = await both()
    // Long enough that a frame drawn late matters little.
    await eventually(async () => (await both())[0]).toBeGreaterThan(at + 4)
    const [end, to] = await both()
    return (to - from) / (end - at)
  }

  test('half the tempo keeps the pitch', async () => {
    const page = await player()
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    // As recorded, nothing is processed, so the kernel is not even loaded.
    await play(page)
    expect(Math.abs((await tempo(page)) - 1)).toBeLessThan(0.05)
    await page.getByRole('button', { name: 'Pause' }).click()
    // Nothing is computed for silence.
    await eventually(() => page.evaluate('clock.state')).toBe('suspended')
    expect(asked.filter((url) => url.includes('stretch'))).toEqual([])
    await page.getByRole('slider', { name: 'Position' }).fill('0')
    await page.getByRole('slider', { name: 'Tempo' }).fill('50')
    await play(page)
    expect(Math.abs((await tempo(page)) - 0.5)).toBeLessThan(0.05)
    await eventually(async () => Math.abs((await pitch(page)) - hertz)).toBeLessThan(2)
    expect(await barriers(page)).toEqual([])
    await page.getByRole('button', { name: 'As recorded' }).click()
    await eventually(() => page.getByRole('slider', { name: 'Tempo' }).inputValue()).toBe('100')
    expect(await page.getByRole('slider', { name: 'Pitch' }).inputValue()).toBe('0')
    expect(asked.filter((url) => url.includes('stretcher.js'))).toHaveLength(1)
  })

  test('an octave up keeps the tempo', async () => {
    const page = await player()
    await page.getByRole('slider', { name: 'Pitch' }).fill('12')
    await play(page)
    await eventually(async () => Math.abs((await pitch(page)) - 2 * hertz)).toBeLessThan(3)
    expect(Math.abs((await tempo(page)) - 1)).toBeLessThan(0.05)
  })

  test('a boosted mix is turned down before it is clipped', async () => {
    const page = await player()
    for (const stem of ['Vocals', 'Accompaniment'])
      await page.getByRole('slider', { name: `Volume of ${stem}` }).fill('200')
    expect(await page.getByRole('slider', { name: 'Volume of Vocals' }).getAttribute('aria-valuetext')).toBe(
      'Volume +12.0 dB',
    )
    await play(page)
    // The song peaks at 0.7, so four times as much would be clipped.
    await eventually(() => heardPeak(page)).toBeGreaterThan(0.8)
    expect(await heardPeak(page)).toBeLessThanOrEqual(1)
  })

  test('a song at full scale stays below it at another pitch', async () => {
    const page = await player('loud.wav')
    await page.getByRole('slider', { name: 'Pitch' }).fill('5')
    await play(page)
    await eventually(() => heardPeak(page)).toBeGreaterThan(0.9)
    let most = 0
    await eventually(async () => {
      most = Math.max(most, await heardPeak(page))
      return position(page)
    }).toBeGreaterThan(4)
    expect(most).toBeLessThan(1)
    // As recorded, the limiter is bypassed.
    await page.getByRole('button', { name: 'As recorded' }).click()
    await page.getByRole('slider', { name: 'Position' }).fill('1')
    await eventually(() => heardPeak(page)).toBeGreaterThan(0.975)
    expect(await heardPeak(page)).toBeLessThan(0.985)
  })

  test('beats and chords of the separation are shown at once, and title and artist on the lock screen', async () => {
    const page = await player('loud.wav')
    await page.getByRole('button', { name: /beats found/i }).waitFor()
    await page
      .locator('.title')
      .getByText(/bpm|beat/)
      .waitFor()
    // Its chords are shown above the lanes, and follow the pitch.
    await page.getByRole('img', { name: 'Chords: A at 0:00, D at 0:03', exact: true }).waitFor()
    await page.getByRole('slider', { name: 'Pitch' }).fill('-4')
    const chords = page.getByRole('img', { name: 'Chords: F at 0:00, A♯ at 0:03', exact: true })
    await chords.waitFor()
    expect(await barriers(page)).toEqual([])
    const { x, y, width } = (await chords.boundingBox()) ?? { x: 0, y: 0, width: 0 }
    const drawn = await chords.getByText('A♯').boundingBox()
    expect(Math.abs((drawn?.x ?? 0) - x - width / 2)).toBeLessThan(width / 20)
    await page.mouse.click(x + 0.75 * width, y + 5)
    await eventually(() => position(page)).toBeGreaterThan(4.4)
    await play(page)
    await eventually(() => page.evaluate<string | null>('navigator.mediaSession.metadata?.title ?? null')).toBe(
      'Harbour',
    )
    expect(await page.evaluate<string>('navigator.mediaSession.metadata.artist')).toBe('The Keel')
  })

  test.each([800, 2560])(
    'chords that have no room for their name are left out on a screen of %i pixels',
    async (width) => {
      const page = await pages.signedIn({ viewport: { width, height: 900 } })
      await page.route(/analysis[.]json/, async (route) => {
        const response = await route.fetch()
        const chords = Array.from({ length: 30 }, (_, at) => ({
          name: at % 2 ? 'F#m' : 'C#m',
          start: at * 0.2,
          end: at === 9 ? 3.8 : at * 0.2 + 0.2,
        }))
        await route.fulfill({ response, json: { ...((await response.json()) as object), chords } })
      })
      await openSong(page, 'loud.wav')
      await page.getByRole('img', { name: /F♯m at 0:02/ }).waitFor()
      const ends = await page.evaluate<{ left: number; right: number }[]>(`
      [...document.querySelectorAll('.ruler[role=img] .tick')].map((one) => one.getBoundingClientRect().toJSON())`)
      expect(ends.length).toBeGreaterThan(0)
      for (const [index, { left }] of ends.slice(1).entries())
        expect(left).toBeGreaterThanOrEqual(ends[index]?.right ?? 0)
    },
  )

  test('mix, loops, tempo and pitch are restored after a reload', async () => {
    const page = await player()
    await page.getByRole('slider', { name: 'Volume of Accompaniment' }).fill('150')
    await page.getByRole('slider', { name: 'Pan of Vocals' }).fill('-50')
    await page.getByRole('button', { name: 'Mute Vocals' }).click()
    await page.getByRole('slider', { name: 'Tempo' }).fill('80')
    await page.getByRole('slider', { name: 'Pitch' }).fill('-3')
    await page.getByRole('slider', { name: 'Position' }).fill('4')
    await page.keyboard.press('[')
    await page.getByLabel('Name of the loop').fill('Chorus')
    await page.getByRole('button', { name: 'Keep loop' }).click()
    const loops = page.getByLabel('Kept loops')
    await eventually(() => loops.locator(':checked').innerText()).toBe('Chorus')
    await page.reload()
    await page.getByRole('region', { name: 'Listen' }).waitFor()
    const set = Promise.all(
      ['Volume of Accompaniment', 'Pan of Vocals', 'Tempo', 'Pitch'].map((name) =>
        page.getByRole('slider', { name }).inputValue(),
      ),
    )
    expect(await set).toEqual(['150', '-50', '80', '-3'])
    expect(await page.getByRole('button', { name: 'Mute Vocals' }).getAttribute('aria-pressed')).toBe('true')
    await page.getByText('Loop 0:04 to 0:12').waitFor()
    expect(await barriers(page)).toEqual([])
    await loops.selectOption('No kept loop')
    await page.getByText('Drag across a waveform to loop a part.').waitFor()
    await loops.selectOption('Chorus')
    await page.getByText('Loop 0:04 to 0:12').waitFor()
    await page.getByRole('button', { name: 'Forget this loop' }).click()
    await eventually(() => loops.count()).toBe(0)
  })

  test.each(['WAV 16-bit', 'WAV 24-bit', 'FLAC 24-bit', 'MP3 320 kbit/s'])(
    'a mix is exported as it is heard, unclipped: %s',
    async (format) => {
      const page = await player()
      await page.getByRole('slider', { name: 'Tempo' }).fill('50')
      await page.getByRole('slider', { name: 'Pitch' }).fill('12')
      for (const stem of ['Vocals', 'Accompaniment'])
        await page.getByRole('slider', { name: `Volume of ${stem}` }).fill('200')
      await page.getByRole('slider', { name: 'Pan of Accompaniment' }).fill('-100')
      await page.getByRole('slider', { name: 'Pan of Vocals' }).fill('-100')
      await page.getByRole('slider', { name: 'Position' }).fill('8')
      await page.keyboard.press('[')
      await page.getByLabel('Format of the mix').selectOption(format)
      const download = await downloaded(page.getByRole('button', { name: 'Export this mix' }))
      const path = join(folder, download.suggestedFilename())
      await download.saveAs(path)
      const header = await readFile(path)
      if (format.startsWith('WAV')) expect(`WAV ${header.readUInt16LE(header.indexOf('fmt ') + 22)}-bit`).toBe(format)
      const { channels, sampleRate } = await readAudio(path)
      const [left = new Float32Array(0), right = new Float32Array(0)] = channels
      expect(sampleRate).toBe(rate)
      expect(left).toHaveLength(8 * rate)
      const highest = (plane: Float32Array) => plane.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
      // At full scale; a lossy encoder may be off a little.
      expect(highest(left)).toBeGreaterThan(0.95)
      if (!format.startsWith('MP3')) expect(highest(left)).toBeLessThan(1)
      expect(highest(right)).toBeLessThan(0.001)
      const rises = left.subarray(rate, 7 * rate).filter((value, at, all) => value >= 0 && (all[at - 1] ?? 0) < 0)
      expect(Math.abs(rises.length / 6 - 2 * hertz)).toBeLessThan(2)
    },
  )

  test('what is quieter than a step of 16 bits is noise in an exported mix, and no distortion', async () => {
    const page = await player()
    // There is hardly any voice in the song, and it is lowered by 80 dB.
    await page.getByRole('button', { name: 'Mute Accompaniment' }).click()
    await page.getByRole('slider', { name: 'Volume of Vocals' }).fill('1')
    const download = await downloaded(page.getByRole('button', { name: 'Export this mix' }))
    const path = join(folder, download.suggestedFilename())
    await download.saveAs(path)
    const [left = new Float32Array(0)] = (await readAudio(path)).channels
    // Without dither, levels below half a step would be silence.
    expect(left.filter((value) => value !== 0).length).toBeGreaterThan(100)
    expect(left.every((value) => Math.abs(value) < 4 / 2 ** 15)).toBe(true)
  })

  test('beats are found on request: loops snap to them, a click plays, and a bar is counted in', async () => {
    const page = await player()
    // Bars of sound do not reach the edge of a lane; lines at the beats do.
    const lines = () =>
      page.getByRole('img', { name: 'Waveform of Vocals' }).evaluate((canvas: Canvas) => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, 1)
        return data.filter((value, index) => index % 4 === 3 && value > 0).length
      })
    expect(await lines()).toBe(0)
    await page.getByRole('button', { name: 'Find the beats' }).click()
    // The tempo, and the key.
    await page
      .locator('.title')
      .getByText(/120 bpm · [A-G][♯#♭b]? (major|minor)/)
      .waitFor()
    // Two a second.
    await eventually(lines).toBeGreaterThan(20)
    expect(await lines()).toBeLessThan(30)
    expect(await barriers(page)).toEqual([])
    await page.getByRole('slider', { name: 'Position' }).fill('4.2')
    await page.keyboard.press('[')
    await page.getByRole('slider', { name: 'Position' }).fill('6.9')
    await page.keyboard.press(']')
    const loop = () =>
      page.evaluate<{ from: number; to: number }>(`(() => {
        const name = Object.keys(localStorage).find((each) => each.startsWith('stemwork.song '))
        return JSON.parse(localStorage.getItem(name)).loop
      })()`)
    // The analysis may place a beat some milliseconds off.
    await eventually(async () => Math.abs((await loop()).to - 7) < 0.05).toBe(true)
    expect(Math.abs((await loop()).from - 4)).toBeLessThan(0.05)

    // The stems are silent, so the output is the click.
    for (const stem of ['Vocals', 'Accompaniment']) await page.getByRole('button', { name: `Mute ${stem}` }).click()
    await page.getByRole('button', { name: 'Click', exact: true }).click()
    await play(page)
    await eventually(() => heardPeak(page)).toBeGreaterThan(0.1)
    await page.getByRole('button', { name: 'Pause' }).click()

    await page.getByRole('button', { name: 'Remove loop' }).click()
    await page.getByRole('slider', { name: 'Position' }).fill('8')
    await page.getByRole('button', { name: 'Count-in' }).click()
    await play(page)
    // A bar of four beats is two seconds.
    await eventually(() => position(page)).toBeLessThan(7)
    await eventually(() => position(page)).toBeGreaterThan(8.2)
    // The tempo survives a reload, and nothing remains after the person has signed out.
    await page.reload()
    await page.locator('.title').getByText('120 bpm').waitFor()
    expect(await page.getByRole('button', { name: 'Count-in' }).getAttribute('aria-pressed')).toBe('true')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    expect(await page.evaluate("Object.keys(localStorage).filter((name) => name.includes('song'))")).toEqual([])
  })

  test('on plain http, where there is no audio thread, the page says so and still plays', async () => {
    const base = service.base.replace(/127\.0\.0\.1|localhost/, 'stems.lan')
    const page = await new ConsolePages(browser, { base, key: service.key }).open()
    await page.getByLabel('API key').fill(service.key)
    await page.getByRole('button', { name: 'Continue' }).click()
    await openSong(page, 'song.wav')
    await page.getByText('Changing tempo and pitch needs https.').waitFor()
    expect(await page.getByRole('slider', { name: 'Tempo' }).isDisabled()).toBe(true)
    await page.keyboard.press('<')
    await play(page)
    await eventually(() => position(page)).toBeGreaterThan(0.5)
    expect(await barriers(page)).toEqual([])
  })
})
