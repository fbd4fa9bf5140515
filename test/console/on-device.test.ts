import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { type Service, startService } from '../http/harness.js'
import { chromiumPath, openBrowser } from './browser.js'
import { barriers, ConsolePages, downloaded, patienceMs, tidyUp } from './console-page.js'

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
    await row.getByText('Separated.').waitFor()
    expect(await barriers(page)).toEqual([])

    for (const stem of ['vocals', 'accompaniments']) {
      const saved = await downloaded(row.getByRole('link', { name: stem }))
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
