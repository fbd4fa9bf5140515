import type { Browser, Page } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { memoryJobs } from '../../src/adapters/memory.js'
import { sampleJob, sampleOutputs, succeed } from '../../src/contract/job-samples.js'
import { type Service, startService } from '../http/harness.js'
import { chromiumPath, openBrowser } from './browser.js'
import { ConsolePages, eventually, patienceMs, tidyUp } from './console-page.js'

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 3 * patienceMs })

/** More than the requests that a browser lets a page leave behind, or a service accept at once. */
const songs = 300

describe.skipIf(!chromiumPath)('hundreds of songs at once (needs Chromium)', () => {
  let service: Service
  let browser: Browser
  const jobs = memoryJobs()

  beforeAll(async () => {
    ;[service, browser] = await Promise.all([
      startService({ http: { console: true, rateLimits: {} }, stores: { jobs } }),
      openBrowser(),
    ])
  })
  tidyUp(() => ({ browser, service }))

  const opened: { page: Page; pages: ConsolePages }[] = []
  // Before the complaints are checked: a quick machine exceeds the usual rate of requests, and the page then waits.
  afterEach(async () => {
    for (const { page, pages } of opened.splice(0)) {
      await page.close()
      const others = pages.complaints.filter((text) => !text.includes('429 (Too Many Requests)'))
      pages.complaints.splice(0, pages.complaints.length, ...others)
    }
  })

  /** The page of an application with this many songs, all of them read and selected. */
  async function selected(): Promise<{ page: Page; left(): Promise<number> }> {
    const { id: app, key } = await service.addApplication('Label')
    const made = Array.from({ length: songs }, (_, number) => sampleJob({ app, name: `take ${number}` }))
    await jobs.createAll(made)
    for (const { id } of made) {
      const claimed = await jobs.claim({ id, owner: 'test', leaseMs: 60_000 })
      if (!claimed) throw new Error('not claimed')
      await jobs.apply(id, succeed(claimed, { outputs: sampleOutputs(id, claimed.token), retentionMs: 1e11 }))
    }
    const pages = new ConsolePages(browser, { base: service.base, key })
    const page = await pages.signedIn()
    opened.push({ page, pages })
    await page.clock.install()
    const all = page.locator('.bulk input')
    await eventually(async () => {
      await page.evaluate(`scrollBy(0, 2000)`)
      return page.locator('.rows li').last().getAttribute('aria-posinset')
    }).toBe(String(songs))
    await all.check()
    await page.getByText(new RegExp(`${songs} selected`)).waitFor()
    const left = async () => {
      const answer = await service.api('/job?size=1', { key })
      return Number(answer.headers.get('x-total-count'))
    }
    return { page, left }
  }

  test('"Select all" says how many of them it has selected', async () => {
    const { page } = await selected()
    await page.getByRole('searchbox', { name: 'Search by name' }).fill('take')
    await page.locator('.bulk input').uncheck()
    await page.getByLabel('Select all').check()
    await page.getByText(`15 of ${songs} selected`).waitFor()
  })

  test('are all deleted, and no longer counted before that', async () => {
    const { page, left } = await selected()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText(`Deleted ${songs} songs.`).first().waitFor()
    await eventually(() => page.getByText('No songs yet.').isVisible()).toBe(true)
    expect(await page.getByText(`${songs} songs`, { exact: true }).count()).toBe(0)
    expect(await left()).toBe(songs)
    await page.clock.runFor(8000)
    await eventually(left).toBe(0)
    expect(await page.getByText('could not be deleted').count()).toBe(0)
  })

  test('a page that is left before they are deleted asks first; one that stays deletes them', async () => {
    const { page, left } = await selected()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText(`Deleted ${songs} songs.`).first().waitFor()
    const asked = page.waitForEvent('dialog')
    void page.close({ runBeforeUnload: true })
    const dialog = await asked
    expect(dialog.type()).toBe('beforeunload')
    await dialog.dismiss()
    await page.clock.runFor(8000)
    await eventually(left).toBe(0)
  })

  test('more than a ZIP file can hold are refused in plain words', async () => {
    const { page } = await selected()
    await page.getByRole('button', { name: 'Download (ZIP)' }).click()
    await page.getByText('A ZIP file holds at most 100 songs. Select fewer.').first().waitFor()
  })
})
