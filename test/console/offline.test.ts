import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { revokeKey } from '../../src/http/index.js'
import { type RunningServer, serve } from '../../src/http/mounts/node.js'
import { type Service, startService } from '../http/harness.js'
import { sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, openBrowser } from './browser.js'
import {
  barriers,
  ConsolePages,
  eventually,
  openSong,
  patienceMs,
  phone,
  position,
  send,
  tidyUp,
} from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 2 * patienceMs })

const rate = 8000
const dayMs = 24 * 3_600_000
const [song, other] = ['Evening train.wav', 'Morning boat.wav']

describe.skipIf(!chromiumPath)('songs without a network (needs Chromium)', () => {
  let service: Service
  let server: RunningServer
  let browser: Browser
  const folder = temporaryFolder()

  beforeAll(async () => {
    for (const [name, pitch] of [[song, 440] as const, [other, 550] as const])
      await writeWav(join(folder, name), [sine(2 * rate, pitch, rate, 0.4)], rate, '16')
    ;[service, browser] = await Promise.all([startService({ http: { console: true } }), openBrowser()])
  })
  afterEach(() => stopServing())
  tidyUp(() => ({ browser, service }))

  /** A separate server that a test stops, because a browser's offline setting does not cover its workers. */
  const startServing = async (port = 0) => (server = await serve(service.handler, { port }))
  const stopServing = () => server.close({ timeoutMs: 100 })

  /** A page with two songs, of which the first is kept offline. */
  async function kept(size = {}) {
    await startServing()
    const { id: app, key } = await service.addApplication('Travellers')
    const base = `${server.origin}/v1`
    const pages = new ConsolePages(browser, { base, key })
    const page = await pages.signedIn(size)
    await send(page, join(folder, song), join(folder, other))
    await openSong(page, song)
    // Firefox asks the person, who may not answer.
    await page.evaluate('navigator.storage.persist = () => new Promise(() => {})')
    await page.getByRole('button', { name: 'Keep offline' }).click()
    await page.getByText(/^Kept on this device/).waitFor()
    await page.getByText(/ that the browser allows is used/).waitFor()
    await page.evaluate('navigator.serviceWorker.ready.then(() => undefined)')
    return { page, base, app, api: (path: string, init?: RequestInit) => service.api(path, { key, ...init }) }
  }

  const marked = (page: Page) => page.evaluate<string[]>('caches.keys()')

  test.each([['desktop', {}] as const, ['phone', phone] as const])(
    'a kept song plays, and the page says that others need the service: %s',
    async (_, size) => {
      const { page, base } = await kept(size)
      const { port } = server
      const address = page.url()
      await stopServing()
      await page.reload()
      await page.getByRole('heading', { name: song }).waitFor()
      await page.getByRole('button', { name: 'Play', exact: true }).click()
      await eventually(() => position(page)).toBeGreaterThan(0.2)
      expect(await barriers(page)).toEqual([])

      await page.getByRole('link', { name: '← Songs on this device' }).click()
      await page.getByRole('link', { name: song }).waitFor()
      expect(await page.getByText(other).count()).toBe(0)
      await page.goto(`${base}/console#/job/00000000-0000-4000-8000-000000000000`)
      await page.getByText('That song is not kept on this device. It needs the service.').waitFor()

      await startServing(port)
      await page.goto(address)
      await page.getByRole('button', { name: 'Try again' }).click()
      await page.getByRole('button', { name: 'Remove from this device' }).click()
      await page.getByRole('button', { name: 'Keep offline' }).waitFor()
      expect(await marked(page)).toEqual([])
    },
  )

  test('a deleted song is removed from the device at once, or when the service is back', async () => {
    const { page, api, base } = await kept()
    const id = page.url().split('/').at(-1) ?? ''
    const { port } = server
    await api(`/job/${id}`, { method: 'DELETE' })
    await eventually(() => marked(page)).toEqual([])

    await page.goto(`${base}/console`)
    await openSong(page, other)
    await page.getByRole('button', { name: 'Keep offline' }).click()
    await page.getByText(/^Kept on this device/).waitFor()
    await stopServing()
    await page.goto(`${base}/console`)
    await page.getByRole('link', { name: other }).waitFor()
    const [job] = (await (await api('/job')).json()) as { id: string }[]
    await api(`/job/${job?.id}`, { method: 'DELETE' })
    await startServing(port)
    await page.getByRole('button', { name: 'Try again' }).click()
    await eventually(() => marked(page)).toEqual([])
  })

  test('nothing is kept for a user who signs out, or whose key was revoked', async () => {
    const first = await kept()
    await first.page.getByRole('button', { name: 'Sign out' }).click()
    await first.page.getByLabel('API key').waitFor()
    expect(await marked(first.page)).toEqual([])
    await first.page.context().close()
    await stopServing()

    const { page, app } = await kept()
    for (const { id } of await service.engine.applications.listKeys(app))
      await revokeKey(service.engine.applications, id)
    await page.getByText('Your key no longer works. Sign in with another one.').waitFor()
    await eventually(() => marked(page)).toEqual([])
  })

  test('after a week without the service, nothing is left', async () => {
    const { page } = await kept()
    await stopServing()
    await page.evaluate(`for (const name of Object.keys(localStorage))
      if (name.startsWith('stemwork.offline')) localStorage.setItem(name, String(Date.now() - ${7 * dayMs + 1000}))`)
    await page.reload()
    await page.getByText('Kept songs play for 7 days without the service. That time is over.').waitFor()
    expect(await marked(page)).toEqual([])
  })

  test('a device without free space says so, and keeps nothing', async () => {
    await startServing()
    const { key } = await service.addApplication('Full device')
    const page = await new ConsolePages(browser, { base: `${server.origin}/v1`, key }).signedIn()
    await send(page, join(folder, song))
    await openSong(page, song)
    const session = await page.context().newCDPSession(page)
    await session.send('Storage.overrideQuotaForOrigin', { origin: server.origin, quotaSize: 1000 })
    await page.getByRole('button', { name: 'Keep offline' }).click()
    await page.getByText(/^This device has no room for the song/).waitFor()
    expect(await marked(page)).toEqual([])
  })

  test('a browser that tells nothing of its storage keeps songs, too', async () => {
    await startServing()
    const { key } = await service.addApplication('Safari 16')
    const base = `${server.origin}/v1`
    const page = await new ConsolePages(browser, { base, key }).arriving()
    await page.addInitScript('delete Navigator.prototype.storage')
    await page.goto(`${base}/console`)
    await send(page, join(folder, song))
    await openSong(page, song)
    await page.getByRole('button', { name: 'Keep offline' }).click()
    await page.getByText(/^Kept on this device/).waitFor()
  })

  test('browsers can install the page', async () => {
    await startServing()
    const page = await new ConsolePages(browser, { base: `${server.origin}/v1`, key: service.app.key }).signedIn()
    const session = await page.context().newCDPSession(page)
    const { url, errors, data } = await session.send('Page.getAppManifest')
    expect([url, errors]).toEqual([`${server.origin}/v1/console/app.webmanifest`, []])
    const { start_url: start, icons } = JSON.parse(data ?? '{}') as { start_url: string; icons: { src: string }[] }
    expect(new URL(start, url).href).toBe(`${server.origin}/v1/console`)
    for (const { src } of icons) expect((await fetch(new URL(src, url))).status).toBe(200)
    const { installabilityErrors } = await session.send('Page.getInstallabilityErrors')
    // Private windows, such as those of tests, install nothing.
    expect(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== 'in-incognito')).toEqual([])
  })
})
