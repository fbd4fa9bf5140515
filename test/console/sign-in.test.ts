import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createHandler, issueKey, revokeKey } from '../../src/http/index.js'
import { listener } from '../../src/http/mounts/node.js'
import { type Service, startService } from '../http/harness.js'
import { chromiumPath, openBrowser } from './browser.js'
import { barriers, ConsolePages, patienceMs, tidyUp } from './console-page.js'

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 2 * patienceMs })

describe.skipIf(!chromiumPath)('signing in (needs Chromium)', () => {
  let service: Service
  let browser: Browser
  let pages: ConsolePages
  let host: Server
  /** Two services on one origin. */
  let origin: string

  beforeAll(async () => {
    ;[service, browser] = await Promise.all([
      startService({ http: { console: true, manageKeys: true } }),
      openBrowser(),
    ])
    pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
    const mounts = ['/first', '/second'].map((path) => {
      const handler = createHandler(service.engine, { basePath: '/v1', console: true })
      return { path, listen: listener(handler, { path }) }
    })
    host = createServer((request, response) => {
      const mount = mounts.find(({ path }) => request.url?.startsWith(path))
      if (mount) mount.listen(request, response)
      else response.writeHead(404).end()
    })
    await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(host.address() as AddressInfo).port}`
  })
  tidyUp(() => ({ browser, service }))
  afterAll(() => void host?.close())

  /** A link created with a key of the application. */
  async function linkTo(name: string): Promise<string> {
    const { key } = await service.addApplication(name)
    const answer = await service.api('/session/code', { method: 'POST', key, body: JSON.stringify({ key }) })
    return `${service.base}/console#code=${((await answer.json()) as { code: string }).code}`
  }
  const application = (page: Page, name: string) => page.getByText(`Application: ${name}`)

  test('without cookies is impossible, and the page says so', async () => {
    const page = await pages.open({}, '/console/icon.svg')
    const session = await page.context().newCDPSession(page)
    await session.send('Emulation.setDocumentCookieDisabled', { disabled: true })
    await page.goto(`${service.base}/console`)
    await page.getByText('Allow cookies here and reload.').waitFor()
    expect(await page.getByLabel('API key').count()).toBe(0)
  })

  test('by a link asks first and names the application, and the link works only once', async () => {
    const link = await linkTo('Label')
    const page = await pages.open({}, '/console/icon.svg')
    await page.goto(link)
    await page.getByRole('heading', { name: 'Sign in to “Label”?' }).waitFor()
    expect([await barriers(page), page.url(), await page.context().cookies()]).toEqual([
      [],
      `${service.base}/console`,
      [],
    ])
    await page.getByRole('button', { name: 'Sign in' }).click()
    await application(page, 'Label').waitFor()

    const another = await pages.open({}, '/console/icon.svg')
    await another.goto(link)
    await another.getByRole('button', { name: 'Sign in' }).click()
    await another.getByText('The link was used already').waitFor()
    expect(await another.getByLabel('API key').isVisible()).toBe(true)
    expect(pages.complaints.splice(0)).toEqual([expect.stringContaining('409 (Conflict)')])
  })

  test('by a planted link leaves the user signed in as before unless confirmed; all tabs follow', async () => {
    const page = await pages.signedIn()
    const other = await page.context().newPage()
    await other.goto(`${service.base}/console`)
    await application(other, 'Test application').waitFor()
    const link = await linkTo('Stranger')
    // In the page's own tab, like a click on a link.
    await page.goto(link)
    await page.getByText('You are signed in to “Test application”.').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await application(page, 'Test application').waitFor()

    await page.goto(link)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await application(page, 'Stranger').waitFor()
    // Otherwise it would work for another application than it shows.
    await application(other, 'Stranger').waitFor()
  })

  test('by an invalid link changes nothing', async () => {
    const page = await pages.signedIn()
    await page.goto(`${service.base}/console#code=made-up`)
    await application(page, 'Test application').waitFor()
    const stranger = await pages.open({}, '/console#code=made-up')
    await stranger.getByText('This sign-in link no longer works.').waitFor()
    // Links of earlier versions carried the key itself.
    await stranger.goto(`${service.base}/console#key=${service.app.key}`)
    await stranger.reload()
    await stranger.getByLabel('API key').waitFor()
    expect(pages.complaints.splice(0)).toEqual(Array(2).fill(expect.stringContaining('400 (Bad Request)')))
  })

  test('a new key comes with a link', async () => {
    const page = await pages.signedIn({ permissions: ['clipboard-read', 'clipboard-write'] })
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('button', { name: 'Copy sign-in link' }).click()
    await page.getByText('Copied', { exact: true }).first().waitFor()
    const link = await page.evaluate<string>('navigator.clipboard.readText()')
    const stranger = await pages.open({}, '/console/icon.svg')
    await stranger.goto(link)
    await stranger.getByRole('button', { name: 'Sign in' }).click()
    await application(stranger, 'Test application').waitFor()
  })

  test('an open page is signed out within 2 s of the end of its key, even without requests or events', async () => {
    const { key, record } = await issueKey(service.engine.applications, service.app.id)
    // Both sides wait only for these clocks, so the sum is the time that a quick machine takes.
    const [serverMs, pageMs] = [1000, 500]
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const page = await pages.arriving({}, key)
      await page.clock.install()
      await page.goto(`${service.base}/console`)
      await page.getByText('Connected', { exact: true }).waitFor()
      await page.getByText('Loading …', { exact: true }).waitFor({ state: 'detached' })
      await page.clock.pauseAt(Date.now() + 1000)
      const asked: string[] = []
      page.on('request', (request) => asked.push(new URL(request.url()).pathname))
      // Another process of the service would do the same.
      await revokeKey(service.engine.applications, record.id)
      await vi.advanceTimersByTimeAsync(serverMs)
      await page.getByText('Reconnecting', { exact: true }).waitFor()
      expect(asked).toEqual([])
      await page.clock.runFor(pageMs)
      await page.getByRole('button', { name: 'Sign out' }).waitFor({ state: 'detached' })
      // It takes some frames to draw the next page.
      await page.clock.resume()
      await page.getByText('Your key no longer works').waitFor()
      expect(asked.slice(0, 1)).toEqual(['/v1/job/events'])
    } finally {
      vi.useRealTimers()
    }
  })

  test('two services on one origin do not share sessions', async () => {
    const keys = [await service.addApplication('One'), await service.addApplication('Two')]
    const page = await (await browser.newContext()).newPage()
    const signIn = async (path: string, key = '') => {
      await page.goto(`${origin}${path}/v1/console`)
      await page.getByLabel('API key').fill(key)
      await page.getByRole('button', { name: 'Continue' }).click()
    }
    await signIn('/first', keys[0]?.key)
    await application(page, 'One').waitFor()
    await signIn('/second', keys[1]?.key)
    await application(page, 'Two').waitFor()
    expect((await page.context().cookies(`${origin}/second/v1/job`)).length).toBe(1)
    await page.goto(`${origin}/first/v1/console`)
    await application(page, 'One').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    await page.goto(`${origin}/second/v1/console`)
    await application(page, 'Two').waitFor()
  })

  test('a page of another port of the same machine cannot use the session', async () => {
    const page = await pages.signedIn()
    // To the browser both are one site, so it sends the cookie: only the origin differs.
    await page.goto(`${origin}/first/v1/healthz`)
    const sent = new Promise<[string, number]>((resolve) =>
      service.server.server.on('request', ({ method, headers }: IncomingMessage, response: ServerResponse) => {
        if (method === 'POST') response.on('finish', () => resolve([headers.cookie ?? '', response.statusCode]))
      }),
    )
    const request = { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }
    await page.evaluate(`fetch('${service.base}/application/key', ${JSON.stringify(request)})`)
    expect(await sent).toEqual([expect.stringContaining('stemwork-console'), 401])
    expect(pages.complaints.splice(0)).toEqual([`asked for ${origin}/first/v1/healthz`])
  })
})
