import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { cuttingProxy } from '../http/storage/cutting-proxy.js'
import { sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, startConsole } from './browser.js'
import {
  barriers,
  ConsolePages,
  eventually,
  openSong,
  patienceMs,
  phone,
  position,
  rowOf,
  send,
  tidyUp,
} from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 3 * patienceMs })

const rate = 8000

describe.skipIf(!chromiumPath)('a service that is killed under the page and started again (needs Chromium)', () => {
  let service: ConsoleService
  let browser: Browser
  const folder = temporaryFolder()
  const song = () => join(folder, 'song.wav')
  const data = () => join(folder, 'data')

  beforeAll(async () => {
    await writeWav(song(), [sine(20 * rate, 440, rate, 0.4)], rate, '16')
    ;[service, browser] = await Promise.all([startConsole({ data: data() }), openBrowser()])
  })
  tidyUp(() => ({ browser, service }))

  test('a large upload is resumed where the connection was cut, and nothing that is stored is sent again', async () => {
    const large = join(folder, 'large.wav')
    await writeWav(large, [sine(15 * 96_000, 440, 96_000, 0.4), sine(15 * 96_000, 660, 96_000, 0.4)], 96_000, '32f')
    // No single connection can carry the whole file.
    const network = await cuttingProxy(Number(new URL(service.base).port), 5 * 1024 ** 2, { staysDown: true })
    const pages = new ConsolePages(browser, { base: `${network.origin}/v1`, key: service.key })
    const page = await pages.signedIn()
    const offsets: number[] = []
    page.on('request', (request) => {
      if (request.method() === 'PATCH') offsets.push(Number(request.headers()['upload-offset']))
    })
    await send(page, large)
    await page.getByText('Connection lost. Trying again.').waitFor()
    network.isDown = false
    await rowOf(page, 'large.wav').locator('.status.succeeded').waitFor()
    expect(offsets.length).toBeGreaterThan(1)
    expect(offsets).toEqual([...new Set(offsets)].toSorted((one, other) => one - other))
    await page.context().close()
    await network.close()
  })

  test('a song that was sent is in the list even while the event stream is down', async () => {
    const pages = new ConsolePages(browser, service)
    const page = await pages.signedIn()
    await page.context().setOffline(true)
    await page.getByText('Reconnecting', { exact: true }).waitFor()
    await page.route('**/events*', (route) => route.abort())
    await page.context().setOffline(false)
    const unheard = join(folder, 'unheard.wav')
    await copyFile(song(), unheard)
    await send(page, unheard)
    await rowOf(page, 'unheard.wav').getByRole('link', { name: 'unheard.wav', exact: true }).waitFor()
    expect(await page.locator('.chip').innerText()).toBe('Reconnecting')
    await page.unrouteAll()
    await rowOf(page, 'unheard.wav').locator('.status.succeeded').waitFor()
    expect(await page.getByRole('link', { name: 'unheard.wav', exact: true }).count()).toBe(1)
  })

  test('when a service shuts down, the chip and the upload say so, and both continue with the next one', async () => {
    const pages = new ConsolePages(browser, service)
    const page = await pages.signedIn()
    const session = await page.context().newCDPSession(page)
    const network = { offline: false, latency: 0, downloadThroughput: -1 }
    await session.send('Network.emulateNetworkConditions', { ...network, uploadThroughput: 20_000 })
    const last = join(folder, 'last orders.wav')
    await copyFile(song(), last)
    await send(page, last)
    await page.locator('.rows .upload .status.sending').waitFor()
    const port = Number(new URL(service.base).port)
    await service.stop()
    await eventually(() => page.locator('.chip').innerText()).toBe('Reconnecting')
    await page.getByText('Connection lost. Trying again.').waitFor()
    await session.send('Network.emulateNetworkConditions', { ...network, uploadThroughput: -1 })
    service = await startConsole({ data: data(), port })
    await eventually(() => page.locator('.chip').innerText()).toBe('Connected')
    await rowOf(page, 'last orders.wav').locator('.status.succeeded').waitFor()
  })

  test.each([['desktop', {}] as const, ['phone', phone] as const])(
    'the chip says so, an upload in progress is completed, and the list and a song are updated: %s',
    async (_, device) => {
      const pages = new ConsolePages(browser, service)
      const page = await pages.signedIn(device)
      const rows = await page.locator('.rows li').count()
      const chip = page.locator('.chip')
      // So slow that the service is gone before the file has arrived.
      const session = await page.context().newCDPSession(page)
      const network = { offline: false, latency: 0, downloadThroughput: -1 }
      await session.send('Network.emulateNetworkConditions', { ...network, uploadThroughput: 20_000 })
      await send(page, song())
      await page.locator('.rows .upload .status.sending').waitFor()
      const port = Number(new URL(service.base).port)
      await service.kill()
      await page.getByText('Connection lost. Trying again.').waitFor()
      await eventually(() => chip.innerText()).toBe('Reconnecting')
      expect(await barriers(page)).toEqual([])

      await session.send('Network.emulateNetworkConditions', { ...network, uploadThroughput: -1 })
      service = await startConsole({ data: data(), port })
      await eventually(() => chip.innerText()).toBe('Connected')
      await page.locator('.rows .upload').waitFor({ state: 'detached' })
      await eventually(() => page.locator('.rows li').count()).toBe(rows + 1)
      await rowOf(page, 'song.wav').locator('.status.succeeded').waitFor()

      await openSong(page, 'song.wav')
      await service.kill()
      await eventually(() => chip.innerText()).toBe('Reconnecting')
      service = await startConsole({ data: data(), port })
      await eventually(() => chip.innerText()).toBe('Connected')
      // The earlier links are those of the ended process; the page requests new ones.
      await page.getByRole('button', { name: 'Play', exact: true }).click()
      await page.getByRole('button', { name: 'Pause' }).waitFor()
      await eventually(() => position(page)).toBeGreaterThan(0.3)
    },
  )
})
