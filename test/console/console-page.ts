import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions, Download, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, expect } from 'vitest'
import type { ConsoleService } from './browser.js'

/** Limit for states that the page reaches by itself; how soon depends on the machine. */
export const patienceMs = 60_000

/** Polls ten times a second: a query by role or text takes a hundredth of a second in the two processes. */
export function eventually<T>(state: () => T | Promise<T>): ReturnType<typeof expect.poll> {
  return expect.poll(state, { timeout: patienceMs, interval: 100 })
}

export const phone: BrowserContextOptions = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }
export const narrow = { viewport: { width: 320, height: 640 } }
/** A screen of 1,280 by 800 points at 200 % has half as many CSS pixels. */
export const zoomed = { viewport: { width: 640, height: 400 } }

const all: ConsolePages[] = []

/** Opens pages of a service and collects their errors, of which `tidyUp` allows none. */
export class ConsolePages {
  readonly complaints: string[] = []
  readonly #browser: Browser
  readonly #service: Pick<ConsoleService, 'base' | 'key'>

  constructor(browser: Browser, service: Pick<ConsoleService, 'base' | 'key'>) {
    this.#browser = browser
    this.#service = service
    all.push(this)
  }

  async open(options: BrowserContextOptions = {}, path = '/console'): Promise<Page> {
    const page = await (await this.#browser.newContext(options)).newPage()
    page.setDefaultTimeout(patienceMs)
    page.on('pageerror', (error) => this.complaints.push(String(error)))
    // The browser logs requests by which the page learns whether a visitor needs a key, and how much of a result
    // exists; and, on plain http, that a header of the page needs https.
    page.on('console', (message) => {
      if (
        message.type() === 'error' &&
        !/4(0[14]|16|22) \(|net::ERR|^The Cross-Origin-Opener-Policy header/.test(message.text())
      )
        this.complaints.push(message.text())
    })
    const { origin } = new URL(this.#service.base)
    page.on('request', (request) => {
      const url = request.url()
      if (!url.startsWith(origin) && !url.startsWith(`blob:${origin}`)) this.complaints.push(`asked for ${url}`)
    })
    await page.goto(this.#service.base + path)
    return page
  }

  /** Signs in as the page does. Open the page afterwards. */
  async signIn(page: Page, key = this.#service.key): Promise<void> {
    const { base } = this.#service
    const headers = { origin: new URL(base).origin }
    const answer = await page.context().request.post(`${base}/session`, { data: { key }, headers })
    expect(answer.status()).toBe(200)
  }

  /** A signed-in user's page before the console is opened, for setup that must precede it. */
  async arriving(options?: BrowserContextOptions, key?: string): Promise<Page> {
    const page = await this.open(options, '/console/icon.svg')
    await this.signIn(page, key)
    return page
  }

  /** Opens a page as a signed-in user, without waiting for its content. */
  async entered(options?: BrowserContextOptions, key?: string): Promise<Page> {
    const page = await this.arriving(options, key)
    await page.goto(`${this.#service.base}/console`)
    return page
  }

  /** A wide page whose audio output is measured, in blocks of the given number of samples. */
  async listening(samples = 32_768): Promise<Page> {
    const page = await this.arriving({ viewport: { width: 1280, height: 900 } })
    await page.addInitScript(tap(samples))
    await page.goto(`${this.#service.base}/console`)
    return page
  }

  async signedIn(options?: BrowserContextOptions): Promise<Page> {
    const page = await this.entered(options)
    await page.getByRole('button', { name: 'Choose songs' }).waitFor()
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.getByText('Loading …', { exact: true }).waitFor({ state: 'detached' })
    return page
  }
}

interface Parts {
  browser: Browser | undefined
  service?: { stop(): Promise<void> } | { close(): Promise<void> }
}

/** After each test, checks that its pages logged no error and closes them; closes the rest at the end. */
export function tidyUp(parts: () => Parts): void {
  afterEach(async () => {
    for (const context of parts().browser?.contexts() ?? []) await context.close()
    expect(all.flatMap(({ complaints }) => complaints.splice(0))).toEqual([])
  })
  afterAll(async () => {
    const { browser, service } = parts()
    await browser?.close()
    if (service) await ('stop' in service ? service.stop() : service.close())
  })
}

/** Taps the audio output: `speaker` measures it, and `clock` counts its samples. */
const tap = (samples: number) => `
  const { connect } = AudioNode.prototype
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      window.clock = this.context
      window.speaker = this.context.createAnalyser()
      speaker.fftSize = ${samples}
      speaker.smoothingTimeConstant = 0
      connect.call(this, speaker)
    }
    return connect.call(this, target, ...rest)
  }`

/** The highest recent sample of the output. */
export function heardPeak(page: Page): Promise<number> {
  return page.evaluate<number>(`(() => {
    const samples = new Float32Array(speaker.fftSize)
    speaker.getFloatTimeDomainData(samples)
    return Math.max(...samples.map(Math.abs))
  })()`)
}

/** The player's position in seconds. Many tests poll it: a single step takes a seventh of the time of a locator. */
export function position(page: Page): Promise<number> {
  return page.evaluate<number>(`Number(document.querySelector('.seek[aria-label="Position"]').value)`)
}

/** The members of a canvas that tests use: they are compiled without browser types. */
export interface Canvas {
  width: number
  height: number
  getContext(kind: '2d'): {
    getImageData(x: number, y: number, width: number, height: number): { data: Uint8ClampedArray }
  }
}

/** The row of a song in the library. */
export function rowOf(page: Page, name: string): Locator {
  return page.locator('.rows li').filter({ hasText: name }).first()
}

/** Sends files through the input of the file dialogue. */
export async function send(page: Page, ...paths: string[]): Promise<void> {
  await page.locator('input[type=file]').setInputFiles(paths)
}

/** Opens a song once it is done. */
export async function openSong(page: Page, name: string): Promise<void> {
  await rowOf(page, name).locator('.status.succeeded').waitFor()
  await rowOf(page, name).getByRole('link', { name, exact: true }).click()
  await page.getByRole('region', { name: 'Listen' }).waitFor()
}

/** The download that a press of a button or link starts. */
export async function downloaded(control: Locator): Promise<Download> {
  const [download] = await Promise.all([control.page().waitForEvent('download'), control.click()])
  return download
}

export function hasFocus(element: Locator): Promise<boolean> {
  return element.evaluate((one: { matches(selector: string): boolean }) => one.matches(':focus'))
}

export function focused(element: Locator): Promise<void> {
  return eventually(() => hasFocus(element)).toBe(true)
}

const axe = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Violations of axe's default rules: WCAG A and AA, and best practices. */
export async function barriers(page: Page): Promise<string[]> {
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(await axe)
  const run =
    "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' " +
    "+ nodes.map(({ html }) => html).join(' ')))"
  return page.evaluate<string[]>(run)
}

/** Buttons, styled as such, whose text is cut off or takes more than a line. */
export function crampedButtons(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll('button:not(.plain)')].filter((button) => {
    const range = document.createRange()
    range.selectNodeContents(button)
    const lines = new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom)))
    const isOfWords = button.children.length === 0
    return isOfWords && (lines.size > 1 || button.scrollWidth > button.clientWidth)
  }).map(({ textContent }) => textContent)`)
}

/** Pixels by which the page is wider than the screen. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
}

/** Starts to measure layout shifts. @returns reads the sum so far, as browsers compute it */
export async function layoutShift(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(`
    window.shifts = []
    window.shiftObserver = new PerformanceObserver((list) => shifts.push(...list.getEntries()))
    shiftObserver.observe({ type: 'layout-shift' })`)
  return () =>
    page.evaluate<number>('[...shifts, ...shiftObserver.takeRecords()].reduce((sum, { value }) => sum + value, 0)')
}
