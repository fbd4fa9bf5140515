import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { type Service, startService } from '../http/harness.js'
import { sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, openBrowser } from './browser.js'
import { ConsolePages, eventually, overflow, patienceMs, phone, rowOf, send, tidyUp } from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 2 * patienceMs })

const rate = 8000
const lists = /[/]job[?]/
const long = (number: number) => `${number} ${'Live_at_the_old_harbour_'.repeat(8)} take.wav`

describe.skipIf(!chromiumPath)('several songs, and several tabs (needs Chromium)', () => {
  let service: Service
  let browser: Browser
  const folder = temporaryFolder()

  beforeAll(async () => {
    await writeWav(join(folder, long(1)), [sine(rate, 440, rate, 0.4)], rate, '16')
    for (const number of [2, 3]) await copyFile(join(folder, long(1)), join(folder, long(number)))
    ;[service, browser] = await Promise.all([
      startService({ http: { console: true }, engine: { dispatch: { concurrency: 20 } } }),
      openBrowser(),
    ])
  })
  tidyUp(() => ({ browser, service }))

  /** A separate application with songs that run until they are stopped. */
  async function studio(...names: string[]): Promise<{ key: string; pages: ConsolePages; idOf(name: string): string }> {
    const { key } = await service.addApplication('Studio')
    const ids = new Map<string, string>()
    for (const name of names) ids.set(name, await service.created({ name }, { key }))
    const pages = new ConsolePages(browser, { base: service.base, key })
    return { key, pages, idOf: (name) => ids.get(name) ?? '' }
  }

  test('are found by plain letters, whatever accents and quotes their names have', async () => {
    const { pages } = await studio('Łódź by night', 'Don’t stop', 'Another one')
    const page = await pages.signedIn()
    const found = () => page.locator('.rows .name').allInnerTexts()
    for (const [search, name] of [
      ['lodz', 'Łódź by night'],
      ["don't", 'Don’t stop'],
    ] as const) {
      await page.getByRole('searchbox', { name: 'Search by name' }).fill(search)
      await eventually(found).toEqual([name])
    }
  })

  test('a song whose name is only spaces can be opened', async () => {
    const { pages } = await studio('   ')
    const page = await pages.signedIn()
    await page.getByRole('link', { name: 'Untitled song' }).click()
    await page.getByRole('heading', { name: 'Untitled song' }).waitFor()
  })

  const isShown = (page: Page, name: string) => rowOf(page, name).isVisible()

  test('are stopped together, even if one was deleted meanwhile, and sent again together', async () => {
    const { key, pages, idOf } = await studio('First take', 'Second take', 'Third take')
    const page = await pages.signedIn()
    await eventually(() => page.locator('.status.started').count()).toBe(3)
    await page.getByLabel('Select all').check()
    await page.getByText('3 of 3 selected').waitFor()
    // Another program deletes a song; this page learns of it too late.
    await page.route('**/cancel', async (route) => {
      if (route.request().url().includes(idOf('Second take')))
        await service.api(`/job/${idOf('Second take')}`, { method: 'DELETE', key })
      await route.continue()
    })
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await eventually(() => page.locator('.status.stopped').count()).toBe(2)
    await page.getByText('2 of 2 selected').waitFor()
    await page.getByRole('button', { name: 'Send again', exact: true }).click()
    await eventually(() => page.locator('.status.started').count()).toBe(2)
    await eventually(() => page.getByRole('status').allInnerTexts()).toContain('Sent 2 songs again.')
  })

  test('a deletion can be undone even if another song ends meanwhile; another tab shows both', async () => {
    const { pages, idOf } = await studio('Rough mix', 'Final mix', 'Outtake')
    const page = await pages.signedIn()
    const other = await page.context().newPage()
    await other.goto(`${service.base}/console`)
    await eventually(() => other.locator('.status.started').count()).toBe(3)

    await rowOf(page, 'Rough mix').getByRole('button', { name: 'Delete Rough mix' }).click()
    await rowOf(page, 'Final mix').getByRole('button', { name: 'Stop Final mix' }).click()
    await rowOf(other, 'Final mix').locator('.status.stopped').waitFor()
    // Announced for screen readers, also in the tab that only watches.
    await eventually(() => page.getByRole('status').allInnerTexts()).toContain('Final mix: stopped.')
    await eventually(() => other.getByRole('status').allInnerTexts()).toContain('Final mix: stopped.')
    await page.getByText('Final mix: stopped.').last().waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await rowOf(page, 'Rough mix').waitFor()

    // The page of a song that is deleted elsewhere shows that.
    await other.goto(`${service.base}/console#/job/${idOf('Outtake')}`)
    await other.getByRole('heading', { name: 'Outtake' }).waitFor()
    await rowOf(page, 'Outtake').getByRole('button', { name: 'Delete Outtake' }).click()
    await page.getByText('Deleted Outtake.').last().waitFor()
    await page.close({ runBeforeUnload: true })
    await other.getByText('This song was deleted.').waitFor()
    await other.getByRole('link', { name: 'Library' }).click()
    await rowOf(other, 'Rough mix').waitFor()
    expect(await isShown(other, 'Outtake')).toBe(false)
  })

  test('a tab that another one signs out says what was not sent, and names no song', async () => {
    const { pages } = await studio('Rough mix', 'Outtake')
    const page = await pages.signedIn()
    const other = await page.context().newPage()
    await other.goto(`${service.base}/console`)
    await page.route('**/storage/uploads/**', () => {})
    await send(page, join(folder, long(1)))
    await page.locator('.upload .status').waitFor()
    await rowOf(page, 'Outtake').getByRole('button', { name: 'Delete Outtake' }).click()
    await page.getByRole('link', { name: 'Rough mix' }).click()
    await page.getByRole('heading', { name: 'Rough mix' }).waitFor()
    await page.getByRole('button', { name: 'Undo' }).waitFor()

    await other.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    const messages = page.getByRole('region', { name: 'Messages' })
    await messages.getByText('A song was not sent.').waitFor()
    // Nothing can be undone any more.
    expect(await messages.getByRole('button').allInnerTexts()).toEqual(['Dismiss'])
    expect([await page.title(), await page.getByText(/Outtake|Rough mix|harbour/).count()]).toEqual(['stemwork', 0])
  })

  test('a song that ends while the page reads the list or is disconnected is shown and announced', async () => {
    const { key, pages, idOf } = await studio('First take', 'Second take')
    const stop = async (name: string) => {
      await service.api(`/job/${idOf(name)}/cancel`, { method: 'POST', key })
      await vi.waitUntil(async () => (await service.engine.get(idOf(name)))?.status === 'FAILED', patienceMs)
    }
    const page = await pages.arriving()
    let holds = false
    let answered = () => {}
    const wasAnswered = new Promise<void>((resolve) => (answered = resolve))
    await page.route(lists, async (route) => {
      if (!holds) return route.continue()
      holds = false
      const answer = await route.fetch()
      await stop('First take')
      // From here on, the answer is older than the stream's events.
      await rowOf(page, 'First take').locator('.status.stopped').waitFor()
      await route.fulfill({ response: answer })
      answered()
    })
    await page.goto(`${service.base}/console`)
    await rowOf(page, 'First take').locator('.status.started').waitFor()
    await page.getByText('Connected', { exact: true }).waitFor()
    // The page reads the list again after it has reconnected: its rows and the stream are there.
    await page.context().setOffline(true)
    await page.getByText('Reconnecting', { exact: true }).waitFor()
    holds = true
    await page.context().setOffline(false)
    await wasAnswered
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 200))')
    await rowOf(page, 'Second take').locator('.status.started').waitFor()
    expect(await rowOf(page, 'First take').locator('.status').innerText()).toBe('Stopped')

    await page.context().setOffline(true)
    await page.getByText('Reconnecting', { exact: true }).waitFor()
    await stop('Second take')
    await page.context().setOffline(false)
    await page.getByText('Connected', { exact: true }).waitFor()
    await rowOf(page, 'Second take').locator('.status.stopped').waitFor()
    await eventually(() => page.getByRole('status').allInnerTexts()).toContain('Second take: stopped.')
  })

  test('a song that another program sends while the page reads the list stays in it', async () => {
    const { key, pages } = await studio('First take')
    const page = await pages.signedIn()
    await page.context().setOffline(true)
    await page.getByText('Reconnecting', { exact: true }).waitFor()
    let answered = () => {}
    const wasAnswered = new Promise<void>((resolve) => (answered = resolve))
    // The page reads the list again after it has reconnected.
    await page.route(lists, async (route) => {
      const answer = await route.fetch()
      await service.created({ name: 'Late take' }, { key })
      // From here on, the answer is older than the stream's events.
      await rowOf(page, 'Late take').waitFor()
      await route.fulfill({ response: answer })
      answered()
    })
    await page.context().setOffline(false)
    await wasAnswered
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 200))')
    expect(await isShown(page, 'Late take')).toBe(true)
    await page.getByText('2 songs', { exact: true }).waitFor()
    // Does not wait for a list that is still being answered.
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  })

  test('a song that no longer matches the filter leaves the list and is no longer counted', async () => {
    const { key, pages, idOf } = await studio('First take', 'Second take')
    const page = await pages.entered()
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.goto(`${service.base}/console#/?status=STARTED`)
    await page.getByText('2 songs', { exact: true }).waitFor()
    await service.api(`/job/${idOf('First take')}/cancel`, { method: 'POST', key })
    await page.getByText('1 song', { exact: true }).waitFor()
    expect(await page.locator('.rows li').allInnerTexts()).toEqual([expect.stringContaining('Second take')])
  })

  test('the count of a list that was read to its end is that of its songs', async () => {
    const { pages } = await studio('First take', 'Second take')
    const page = await pages.arriving()
    await page.route(lists, async (route) => {
      const answer = await route.fetch()
      expect(answer.headers()['x-total-count']).toBe('2')
      // The service counts first and lists afterwards: a song that changes in between is counted but not listed.
      await route.fulfill({ response: answer, headers: { ...answer.headers(), 'x-total-count': '3' } })
    })
    await page.goto(`${service.base}/console`)
    await page.getByText('2 songs', { exact: true }).waitFor()
    // Does not wait for a list that is still being answered.
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  })

  test('a song beyond the pages read changes neither them nor the count; reconnected, all are read again', async () => {
    const names = Array.from({ length: 53 }, (_, index) => `Take ${index + 1}.`)
    const { key, pages, idOf } = await studio(...names)
    const page = await pages.arriving()
    const stop = (name: string) => service.api(`/job/${idOf(name)}/cancel`, { method: 'POST', key })
    await page.route(lists, async (route) => {
      const answer = await route.fetch()
      // The stream reports it before the page has its list.
      await page.getByText('Connected', { exact: true }).waitFor()
      await stop('Take 1.')
      await page.evaluate('new Promise((resolve) => setTimeout(resolve, 200))')
      await route.fulfill({ response: answer })
    })
    await page.goto(`${service.base}/console`)
    await page.getByText('53 songs', { exact: true }).waitFor()
    await page.unrouteAll({ behavior: 'ignoreErrors' })

    await stop('Take 2.')
    await stop('Take 53.')
    await rowOf(page, 'Take 53.').locator('.status.stopped').waitFor()
    await page.getByText('53 songs', { exact: true }).waitFor()
    const end = () => page.evaluate('scrollTo(0, document.body.scrollHeight)')
    await end()
    await rowOf(page, 'Take 1.').locator('.status.stopped').waitFor()

    await page.context().setOffline(true)
    await page.getByText('Reconnecting', { exact: true }).waitFor()
    await stop('Take 3.')
    await page.context().setOffline(false)
    await rowOf(page, 'Take 3.').locator('.status.stopped').waitFor()
    await rowOf(page, 'Take 1.').waitFor()
    await page.getByText('53 songs', { exact: true }).waitFor()
    // Running jobs would delay those of other tests.
    await Promise.all(names.map(stop))
  })

  test('the page of a song that ends while the page reads it shows the end', async () => {
    const { key, pages, idOf } = await studio('Only take')
    const page = await pages.signedIn()
    let answered = () => {}
    const wasAnswered = new Promise<void>((resolve) => (answered = resolve))
    await page.route(
      ({ pathname }) => pathname.endsWith(`/job/${idOf('Only take')}`),
      async (route) => {
        const answer = await route.fetch()
        await service.api(`/job/${idOf('Only take')}/cancel`, { method: 'POST', key })
        // From here on, the answer is older than the stream's events.
        await page.locator('.title .quiet', { hasText: '· Stopped' }).waitFor()
        await route.fulfill({ response: answer })
        answered()
      },
    )
    await rowOf(page, 'Only take').getByRole('link', { name: 'Only take', exact: true }).click()
    await wasAnswered
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 200))')
    expect(await page.locator('.title .quiet').innerText()).toMatch(/ · Stopped/)
  })

  test('with very long names fit a phone, while they are sent and when they are done', async () => {
    const { pages } = await studio()
    const page = await pages.signedIn(phone)
    let go = () => {}
    const held = new Promise<void>((resolve) => (go = resolve))
    await page.route('**/storage/**', async (route) => {
      await held
      await route.continue()
    })
    await send(page, ...[1, 2, 3].map((number) => join(folder, long(number))))
    await page.getByText('Waiting to upload').nth(1).waitFor()
    expect([await page.locator('.rows .upload').count(), await overflow(page)]).toEqual([3, 0])
    await page.getByRole('button', { name: `Stop ${long(2)}` }).click()
    await eventually(() => page.locator('.rows .upload').count()).toBe(2)
    go()
    await eventually(() => page.locator('.status.succeeded').count()).toBe(2)
    // A job may be done before the answer to its creation arrives, which removes the upload's row.
    await eventually(() => page.locator('.rows li').count()).toBe(2)
    expect(await overflow(page)).toBe(0)
    expect(await isShown(page, long(2).slice(0, 40))).toBe(false)
  })
})
