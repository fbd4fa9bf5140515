import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { type Service, startService } from '../http/harness.js'
import { chromiumPath, openBrowser } from './browser.js'
import { barriers, ConsolePages, downloaded, overflow, patienceMs, tidyUp } from './console-page.js'

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 2 * patienceMs })

const song = fileURLToPath(new URL('../fixtures/audio/stereo.mp3', import.meta.url))
const choice = 'Separate on this device'

describe.skipIf(!chromiumPath)('the choice to separate on the device (needs Chromium)', () => {
  let service: Service
  let browser: Browser

  beforeAll(async () => {
    // Otherwise the page optimizes the runtime for seconds, to separate a second of audio.
    const quick = openBrowser('--js-flags=--liftoff-only')
    ;[service, browser] = await Promise.all([startService({ http: { console: true } }), quick])
  })
  tidyUp(() => ({ browser, service }))

  test('gives files to save, and sends nothing to the service', async () => {
    const pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
    const page = await pages.signedIn()
    const sent: string[] = []
    page.on('request', (request) => request.method() !== 'GET' && sent.push(request.url()))
    const button = page.getByRole('button', { name: choice })
    await button.waitFor()
    const looks = 'getComputedStyle(document.querySelector(".on-device button")).borderTopColor'
    expect(await page.evaluate<string>(looks), 'it looks like a button').not.toBe('rgba(0, 0, 0, 0)')
    const chooser = page.waitForEvent('filechooser')
    await button.click()
    await (await chooser).setFiles(song)
    const row = page.locator('.on-device li')
    await row.locator('.status.succeeded').getByText('Separated.').waitFor()
    await page.getByRole('status').getByText('stereo.mp3: Separated.').waitFor()
    expect(await barriers(page)).toEqual([])

    const names = { vocals: 'Vocals', accompaniments: 'Accompaniment' }
    for (const width of [320, 800, 1280]) {
      await page.setViewportSize({ width, height: 900 })
      const [button, ...links] = await Promise.all(
        [
          page.getByRole('button', { name: choice }),
          ...Object.values(names).map((name) => row.getByRole('link', { name })),
        ].map(async (one) => (await one.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }),
      )
      const [one, other] = links
      const gap = Math.max(other!.x - one!.x - one!.width, other!.y - one!.y - one!.height)
      expect(gap, `between the files at ${width}`).toBeGreaterThan(5)
      expect(one!.y - button!.y - button!.height, `above the list at ${width}`).toBeGreaterThan(15)
      expect(await overflow(page)).toBe(0)
    }
    for (const [stem, name] of Object.entries(names)) {
      const saved = await downloaded(row.getByRole('link', { name: `${name} of stereo.mp3` }))
      expect(saved.suggestedFilename()).toBe(`stereo - ${stem}.wav`)
      const bytes = await readFile(await saved.path())
      expect(bytes.toString('latin1', 0, 4)).toBe('RIFF')
      expect(bytes.length).toBeGreaterThan(100_000)
    }
    // Offered only in place of a workflow that separates, and selected again with the results.
    const workflows = page.getByLabel('Workflow').first()
    const separation = await workflows.inputValue()
    await workflows.selectOption('Held')
    await page.getByRole('heading', { name: 'Send a song' }).waitFor()
    expect(await button.count()).toBe(0)
    await workflows.selectOption(separation)
    await row.getByText('Separated.').waitFor()
    await row.getByRole('button', { name: 'Remove stereo.mp3' }).click()
    expect(await row.count()).toBe(0)
    expect(sent).toEqual([])
  })
})
