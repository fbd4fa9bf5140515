import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, openBrowserOf, startConsole } from './browser.js'
import { ConsolePages, eventually, openSong, patienceMs, send, tidyUp, position } from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 3 * patienceMs, hookTimeout: 3 * patienceMs })

const rate = 8000
const run = promisify(execFile)

/** The messages that a Linux desktop sends when a media key or its lock screen is used (MPRIS). */
class Desktop {
  readonly address: string
  readonly #bus: ReturnType<typeof spawn>

  private constructor(bus: ReturnType<typeof spawn>, address: string) {
    this.#bus = bus
    this.address = address
  }

  static async start(): Promise<Desktop> {
    const bus = spawn('dbus-daemon', ['--session', '--nofork', '--print-address'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [address] = (await once(createInterface({ input: bus.stdout }), 'line')) as [string]
    return new Desktop(bus, address)
  }

  async #send(to: string, path: string, method: string, ...args: string[]): Promise<string> {
    const command = [`--bus=${this.address}`, '--print-reply', `--dest=${to}`, path, method, ...args]
    return (await run('dbus-send', command)).stdout
  }

  async #player(): Promise<string> {
    const names = await this.#send('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus.ListNames')
    return /org\.mpris\.MediaPlayer2\.[\w.]+/.exec(names)?.[0] ?? ''
  }

  async press(key: string, ...args: string[]): Promise<void> {
    await this.#send(await this.#player(), '/org/mpris/MediaPlayer2', `org.mpris.MediaPlayer2.Player.${key}`, ...args)
  }

  /** The shown value; empty while the browser exposes no player. */
  async shown(property: string): Promise<string> {
    const player = await this.#player()
    if (player === '') return ''
    const [type, name] = ['org.mpris.MediaPlayer2.Player', property].map((text) => `string:${text}`) as [string, string]
    return this.#send(player, '/org/mpris/MediaPlayer2', 'org.freedesktop.DBus.Properties.Get', type, name)
  }

  async stop(): Promise<void> {
    const ended = once(this.#bus, 'exit')
    this.#bus.kill()
    await ended
  }
}

function hasBus(): boolean {
  try {
    return execFileSync('dbus-daemon', ['--version']).length > 0
  } catch {
    return false
  }
}

describe.skipIf(!chromiumPath)('media keys (needs Chromium)', () => {
  let service: ConsoleService
  let browser: Browser
  const folder = temporaryFolder()
  let pages: ConsolePages

  beforeAll(async () => {
    const tone = sine(12 * rate, 440, rate, 0.4)
    await writeWav(join(folder, 'song.wav'), [tone, tone], rate, '16')
    ;[service, browser] = await Promise.all([startConsole({ data: join(folder, 'data') }), openBrowser()])
    pages = new ConsolePages(browser, service)
    const page = await pages.signedIn()
    await page.getByText('Options').click()
    await page.getByLabel('Tempo, key and beats').uncheck()
    await send(page, join(folder, 'song.wav'))
    await openSong(page, 'song.wav')
    await page.context().close()
  })
  tidyUp(() => ({ browser, service }))

  const play = (page: Page) => page.getByRole('button', { name: 'Play', exact: true }).click()

  test.skipIf(!hasBus())('of a desktop control the player of the page (needs dbus-daemon)', async () => {
    const desktop = await Desktop.start()
    const shown = await openBrowserOf(desktop.address)
    try {
      const page = await new ConsolePages(shown, service).signedIn()
      await openSong(page, 'song.wav')
      await play(page)
      await eventually(() => desktop.shown('Metadata')).toMatch(/"xesam:title"\s+variant\s+string "song"/)
      await eventually(() => desktop.shown('PlaybackStatus')).toContain('"Playing"')
      await desktop.press('PlayPause')
      await page.getByRole('button', { name: 'Play', exact: true }).waitFor()
      await eventually(() => desktop.shown('PlaybackStatus')).toContain('"Paused"')
      const before = await position(page)
      await desktop.press('Seek', 'int64:5000000')
      await eventually(() => position(page)).toBeGreaterThan(before + 4)
      // Back to the start, because no loop is kept.
      await desktop.press('Previous')
      await eventually(() => position(page)).toBeLessThan(1)
      await desktop.press('Play')
      await page.getByRole('button', { name: 'Pause' }).waitFor()
    } finally {
      await shown.close()
      await desktop.stop()
    }
  })

  test('media keys and the lock screen play, pause and seek', async () => {
    const page = await pages.arriving()
    await page.addInitScript(`
      window.handlers = {}
      const { setActionHandler } = MediaSession.prototype
      MediaSession.prototype.setActionHandler = function (action, handler) {
        handlers[action] = handler
        return setActionHandler.call(this, action, handler)
      }
      const { setPositionState } = MediaSession.prototype
      MediaSession.prototype.setPositionState = function (state) {
        window.positionState = state
        return setPositionState.call(this, state)
      }`)
    await page.goto(`${service.base}/console`)
    await openSong(page, 'song.wav')
    await play(page)
    await eventually(() => page.evaluate<string>('navigator.mediaSession.playbackState')).toBe('playing')
    expect(await page.evaluate<string>('navigator.mediaSession.metadata.title')).toBe('song')
    await page.evaluate('handlers.seekto({ seekTime: 9 })')
    await eventually(() => position(page)).toBeGreaterThan(9)
    await page.evaluate('handlers.pause()')
    await page.getByRole('button', { name: 'Play', exact: true }).waitFor()
    await eventually(() => page.evaluate<string>('navigator.mediaSession.playbackState')).toBe('paused')
    await page.evaluate('handlers.play()')
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    // The time on the lock screen advances at the song's tempo.
    await page.getByRole('slider', { name: 'Tempo' }).fill('50')
    await eventually(() => page.evaluate<number>('positionState.playbackRate')).toBe(0.5)
    expect(await page.evaluate<number>('positionState.duration')).toBe(12)
    await page.evaluate('handlers.seekbackward({ seekOffset: 8 })')
    await eventually(() => position(page)).toBeLessThan(5)
    // Next and previous step through the kept loops, once there are any.
    expect(await page.evaluate('handlers.nexttrack')).toBe(null)
    for (const from of ['2', '8']) {
      await page.getByRole('slider', { name: 'Position' }).fill(from)
      await page.keyboard.press('[')
      await page.getByRole('button', { name: 'Keep loop' }).click()
      await page.getByRole('button', { name: 'Remove loop' }).click()
    }
    await page.getByRole('slider', { name: 'Position' }).fill('5')
    await page.evaluate('handlers.nexttrack()')
    await page.getByText('Loop 0:08 to 0:12').waitFor()
    await page.evaluate('handlers.previoustrack()')
    await page.getByText('Loop 0:02 to 0:12').waitFor()
    await page.evaluate('handlers.previoustrack()')
    await eventually(() => position(page)).toBeLessThan(2)
    // Leaving the song leaves no media session behind.
    await page.getByRole('link', { name: '← All songs' }).click()
    await eventually(() => page.evaluate<string>('navigator.mediaSession.playbackState')).toBe('none')
  })

  test('the screen stays on while a song plays, even after the page was hidden', async () => {
    const page = await pages.arriving()
    // A headless browser has no screen to lock; other browsers need not ask.
    await page.context().grantPermissions(['screen-wake-lock'])
    await page.addInitScript(`
      window.locks = []
      const { request } = WakeLock.prototype
      WakeLock.prototype.request = async function (type) {
        const lock = await request.call(this, type)
        locks.push(lock)
        return lock
      }`)
    await page.goto(`${service.base}/console`)
    await openSong(page, 'song.wav')
    const held = () => page.evaluate<number>('locks.filter(({ released }) => !released).length')
    expect(await held()).toBe(0)
    await play(page)
    await eventually(held).toBe(1)
    // As the browser does when a page is hidden.
    await page.evaluate('locks[0].release()')
    await eventually(held).toBe(0)
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await eventually(held).toBe(1)
    await page.keyboard.press('Space')
    await page.getByRole('button', { name: 'Play', exact: true }).waitFor()
    await eventually(held).toBe(0)
  })
})
