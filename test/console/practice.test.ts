import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, startConsole } from './browser.js'
import { barriers, ConsolePages, eventually, openSong, patienceMs, send } from './console-page.js'

const rate = 44_100
const hertz = 440

vi.setConfig({ testTimeout: 3 * patienceMs, hookTimeout: 3 * patienceMs })

/** Keeps what goes to the loudspeaker, and what each track has come to before its volume. */
const tap = `
  const { connect } = AudioNode.prototype
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      window.clock = this.context
      window.speaker = this.context.createAnalyser()
      speaker.fftSize = 32768
      speaker.smoothingTimeConstant = 0
      connect.call(this, speaker)
    }
    return connect.call(this, target, ...rest)
  }`

describe.skipIf(!chromiumPath)('practising (needs Chromium)', () => {
  let service: ConsoleService
  let browser: Browser
  let folder: string
  let pages: ConsolePages

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'stemwork-practice-'))
    const tone = sine(12 * rate, hertz, rate, 0.4)
    await writeWav(join(folder, 'song.wav'), [tone, tone], rate, '16')
    ;[service, browser] = await Promise.all([startConsole({ data: join(folder, 'data') }), openBrowser()])
    pages = new ConsolePages(browser, service)
    const page = await pages.signedIn()
    await send(page, join(folder, 'song.wav'))
    await openSong(page, 'song.wav')
    await page.context().close()
  })
  afterAll(async () => {
    await browser?.close()
    await service?.stop()
    await rm(folder, { recursive: true })
  })
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close()
    expect(pages.complaints.splice(0)).toEqual([])
  })

  async function player(): Promise<Page> {
    const page = await pages.open({ viewport: { width: 1280, height: 900 } }, '/console/icon.svg')
    await page.addInitScript(tap)
    await pages.signIn(page)
    await page.goto(`${service.base}/console`)
    await openSong(page, 'song.wav')
    return page
  }
  const play = (page: Page) => page.getByRole('button', { name: 'Play', exact: true }).click()
  const position = (page: Page) =>
    page.getByRole('slider', { name: 'Position' }).evaluate((slider: { value: string }) => Number(slider.value))
  /** The strongest frequency that is heard. */
  const pitch = (page: Page) =>
    page.evaluate<number>(`(() => {
      const bins = new Float32Array(speaker.frequencyBinCount)
      speaker.getFloatFrequencyData(bins)
      return (bins.indexOf(Math.max(...bins)) * clock.sampleRate) / speaker.fftSize
    })()`)

  /** Seconds of the song for one of the clock. */
  async function tempo(page: Page): Promise<number> {
    const both = () => page.evaluate<[number, number]>("[clock.currentTime, +document.querySelector('.seek').value]")
    await eventually(() => position(page)).toBeGreaterThan(0.5)
    const [at, from] = await both()
    await eventually(async () => (await both())[0]).toBeGreaterThan(at + 2)
    const [end, to] = await both()
    return (to - from) / (end - at)
  }

  test('half the tempo keeps the pitch', async () => {
    const page = await player()
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    // As recorded, nothing is processed, and the kernel is not even loaded.
    await play(page)
    expect(Math.abs((await tempo(page)) - 1)).toBeLessThan(0.05)
    await page.getByRole('button', { name: 'Pause' }).click()
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
})
