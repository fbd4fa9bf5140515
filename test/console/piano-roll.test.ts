import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, startConsole } from './browser.js'
import {
  barriers,
  ConsolePages,
  eventually,
  narrow,
  overflow,
  patienceMs,
  rowOf,
  send,
  tidyUp,
  position,
} from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 44_100
/** Two long notes with a pause between them: start and end in seconds, MIDI number. */
const played = [
  [0.5, 2.5, 69],
  [3.5, 5.5, 76],
] as const
const seconds = 6

vi.setConfig({ testTimeout: 3 * patienceMs, hookTimeout: 3 * patienceMs })

describe.skipIf(!chromiumPath)('the notes of a song in the console (needs Chromium)', () => {
  let service: ConsoleService
  let browser: Browser
  const folder = temporaryFolder()
  let pages: ConsolePages

  beforeAll(async () => {
    const tones = new Float32Array(seconds * rate)
    for (const [from, to, pitch] of played)
      for (let i = from * rate; i < to * rate; i++) {
        const t = i / rate
        const fade = Math.min(1, (t - from) / 0.005, (to - t) / 0.02)
        const hertz = 440 * 2 ** ((pitch - 69) / 12)
        for (const harmonic of [1, 2, 3])
          tones[i]! += ((0.3 * fade) / harmonic ** 2) * Math.sin(2 * Math.PI * harmonic * hertz * t)
      }
    await writeWav(join(folder, 'melody.wav'), [tones, tones], rate, '16')
    ;[service, browser] = await Promise.all([startConsole({ data: join(folder, 'data') }), openBrowser()])
    pages = new ConsolePages(browser, service)
    const page = await pages.signedIn()
    await page.getByLabel('Workflow').first().selectOption('Notes')
    await send(page, join(folder, 'melody.wav'))
    await rowOf(page, 'melody.wav').locator('.status.succeeded').waitFor()
    await page.context().close()
  })
  tidyUp(() => ({ browser, service }))

  async function roll(): Promise<Page> {
    const page = await pages.listening(16_384)
    await rowOf(page, 'melody.wav').getByRole('link', { name: 'melody.wav', exact: true }).click()
    await page.getByRole('img', { name: '2 notes from' }).waitFor()
    return page
  }

  /** The rows of the picture with a note at this time, as shares of the height from the top. */
  const rowsAt = (page: Page, share: number) =>
    page.evaluate<number[]>(`(() => {
      const canvas = document.querySelector('.roll canvas')
      const { height } = canvas
      const { data } = canvas.getContext('2d').getImageData(Math.round(${share} * canvas.width), 0, 1, height)
      const probe = document.createElement('canvas').getContext('2d')
      const token = canvas.parentElement.appendChild(document.createElement('i'))
      token.style.color = 'var(--music)'
      probe.fillStyle = getComputedStyle(token).color
      token.remove()
      probe.fillRect(0, 0, 1, 1)
      const colour = probe.getImageData(0, 0, 1, 1).data
      const isNote = (row) =>
        data[4 * row + 3] > 100 && [0, 1, 2].every((i) => Math.abs(data[4 * row + i] - colour[i]) < 12)
      return Array.from({ length: height }, (_, row) => row).filter(isNote).map((row) => row / height)
    })()`)

  test('are drawn where they sound, higher notes higher, and nothing where there are none', async () => {
    const page = await roll()
    await eventually(async () => (await rowsAt(page, 1.5 / seconds)).length).toBeGreaterThan(0)
    const [low, none, high] = await Promise.all([1.5, 3, 4.5].map((at) => rowsAt(page, at / seconds)))
    expect(none).toEqual([])
    expect(high!.length).toBeGreaterThan(0)
    expect(Math.max(...high!)).toBeLessThan(Math.min(...low!))
    expect([await barriers(page), await overflow(page)]).toEqual([[], 0])
    await page.getByRole('checkbox', { name: 'Song (2)' }).uncheck()
    await eventually(() => rowsAt(page, 1.5 / seconds)).toEqual([])
    await page.getByRole('checkbox', { name: 'Song (2)' }).check()
    // The zoom is around the position, here the beginning, so the first half is shown.
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await eventually(() => rowsAt(page, 4.5 / seconds)).toEqual(low)
    await page.setViewportSize(narrow.viewport)
    expect(await overflow(page)).toBe(0)
  })

  test('are heard at their pitch, from where the user seeks to, in sync; a pause is silent', async () => {
    const page = await roll()
    /** The nearest MIDI number: notes may be bent by a third of a semitone. */
    const heard = () =>
      page.evaluate<number>(`(() => {
        const bins = new Float32Array(speaker.frequencyBinCount)
        speaker.getFloatFrequencyData(bins)
        const loudest = Math.max(...bins)
        const hertz = (bins.indexOf(loudest) * clock.sampleRate) / speaker.fftSize
        return loudest < -60 ? 0 : 69 + Math.round(12 * Math.log2(hertz / 440))
      })()`)
    await page.getByRole('button', { name: 'Play', exact: true }).click()
    await eventually(heard).toBe(69)
    expect(await position(page)).toBeGreaterThan(0.4)
    await page.getByRole('slider', { name: 'Position' }).fill('4')
    await eventually(heard).toBe(76)
    expect(await position(page)).toBeGreaterThanOrEqual(4)
    await page.getByRole('button', { name: 'Pause' }).click()
    await eventually(() => page.evaluate('clock.state')).toBe('suspended')
    const stopped = await position(page)
    expect(stopped).toBeLessThan(seconds)
    // Plays to the end, where it stops by itself.
    await page.getByRole('button', { name: 'Play', exact: true }).click()
    await eventually(() => page.getByRole('button', { name: 'Play', exact: true }).count()).toBe(1)
  })
})
