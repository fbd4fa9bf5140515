import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { type Service, startService } from '../http/harness.js'
import { sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, openBrowser } from './browser.js'
import { ConsolePages, eventually, openSong, patienceMs, send, tidyUp } from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 2 * patienceMs, hookTimeout: patienceMs })

describe.skipIf(!chromiumPath)('a stem that is dragged out of the page (needs Chromium)', () => {
  let service: Service
  let browser: Browser
  const folder = temporaryFolder()

  beforeAll(async () => {
    await writeWav(join(folder, 'Take: one.wav'), [sine(8000, 440, 8000, 0.4)], 8000, '16')
    ;[service, browser] = await Promise.all([startService({ http: { console: true } }), openBrowser()])
  })
  tidyUp(() => ({ browser, service }))

  test('is the file under its name, by a link that works', async () => {
    const pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
    const page = await pages.signedIn()
    await send(page, join(folder, 'Take: one.wav'))
    await openSong(page, 'Take: one.wav')
    const session = await page.context().newCDPSession(page)
    await session.send('Input.setInterceptDrags', { enabled: true })
    await page.evaluate(`addEventListener('dragstart', ({ dataTransfer }) => {
      window.dragged = dataTransfer.getData('DownloadURL')
    })`)
    const stem = page.getByRole('region', { name: 'Download' }).getByRole('link', { name: 'Vocals' })
    await stem.hover()
    await page.mouse.down()
    await page.mouse.move(10, 10, { steps: 5 })
    await eventually(() => page.evaluate('window.dragged')).toMatch(/^audio[/]/)
    await page.mouse.up()
    const [, type, name, link] = /^(.+?):(.+?):(.+)$/.exec(await page.evaluate<string>('window.dragged')) ?? []
    expect([type, name]).toEqual(['audio/wav', expect.stringMatching(/^Take[^:]* one - vocals[.]wav$/)])
    const saved = Buffer.from(await (await fetch(link ?? '')).arrayBuffer())
    expect(saved.equals(await readFile(join(folder, 'Take: one.wav')))).toBe(true)
  })
})
