import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { type Service, startService } from '../http/harness.js'
import { chromiumPath, openBrowser } from './browser.js'
import { barriers, ConsolePages, narrow, overflow, patienceMs, phone, tidyUp } from './console-page.js'

vi.setConfig({ testTimeout: 3 * patienceMs, hookTimeout: 2 * patienceMs })

const ids = (elements: { id: string }[]) => elements.map(({ id }) => id)

describe.skipIf(!chromiumPath)('/docs in a browser (needs Chromium; CHROMIUM_PATH names one that is elsewhere)', () => {
  let service: Service
  let browser: Browser
  let pages: ConsolePages

  beforeAll(async () => {
    ;[service, browser] = await Promise.all([startService({ http: { console: true } }), openBrowser()])
    pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
  })
  tidyUp(() => ({ browser, service }))

  // Narrowing a page keeps it loaded, with axe in it.
  test.each([
    ['dark', {}, []],
    ['light', phone, [narrow.viewport]],
  ] as const)(
    'has no accessibility problem that axe finds, and no horizontal scrolling: %s %o %o',
    async (colorScheme, device, widths) => {
      const page = await pages.open({ ...device, colorScheme }, '/docs')
      await page.locator('#createJob').getByText('Try it').click()
      expect([await barriers(page), await overflow(page)]).toEqual([[], 0])
      for (const width of widths) {
        await page.setViewportSize(width)
        expect([width, await barriers(page), await overflow(page)]).toEqual([width, [], 0])
      }
    },
  )

  test('sends requests with the key and shows the answers', async () => {
    const page = await pages.open({}, '/docs')
    await page.getByLabel('Your API key').fill(service.app.key)
    const create = page.locator('#createJob')
    await create.getByText('Try it').click()
    await create.getByLabel('Body').fill('{"workflow":"service/held","params":{}}')
    await create.getByRole('button', { name: 'Send' }).click()
    await create.getByText('200 OK').waitFor()
    const { id } = JSON.parse(await create.locator('.try pre').innerText()) as { id: string }
    const get = page.locator('#getJob')
    await get.getByText('Try it').click()
    await get.getByLabel('id (path)').fill(id)
    await get.getByRole('button', { name: 'Send' }).click()
    await get.getByText('200 OK').waitFor()
    expect(await get.locator('.try pre').innerText()).toContain(`"id": "${id}"`)
    await get.getByLabel('id (path)').fill('x/../../upload')
    await get.getByRole('button', { name: 'Send' }).click()
    await get.getByRole('status').getByText('404').waitFor()
  })

  test('shows one language in all examples, and both without scripts', async () => {
    const page = await pages.open({}, '/docs')
    await page.locator('#getUploadTicket').getByRole('radio', { name: 'JavaScript' }).check({ force: true })
    expect(await page.locator('#createJob .javascript').isVisible()).toBe(true)
    expect(await page.locator('#createJob .curl').isVisible()).toBe(false)
    await page.reload()
    expect(await page.locator('#createJob .javascript').isVisible()).toBe(true)
    const plain = await pages.open({ javaScriptEnabled: false }, '/docs')
    expect(await plain.locator('#createJob .curl').isVisible()).toBe(true)
    await plain.locator('#createJob').getByRole('radio', { name: 'JavaScript' }).check({ force: true })
    expect(await plain.locator('#createJob .javascript').isVisible()).toBe(true)
    expect(await plain.locator('[data-try]').first().isVisible()).toBe(false)
  })

  test('searches the whole reference while the user types, with a script that is loaded then', async () => {
    const asked: string[] = []
    const page = await pages.open({}, '/docs')
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    const search = page.getByRole('searchbox', { name: 'Search' })
    await search.fill('webhook secret replace')
    await page.getByText('1 found').waitFor()
    expect(asked).toEqual(['/v1/docs/docs-search.js'])
    const shown = () => page.locator('main > section[id]:visible, main > h2:visible').evaluateAll(ids)
    expect(await shown()).toEqual(['application', 'rotateWebhookSecret'])
    expect(await page.locator('.contents li li:visible a').evaluateAll((links) => links.length)).toBe(1)
    expect(await barriers(page)).toEqual([])
    await search.fill('no such words')
    await page.getByText('0 found').waitFor()
    expect(await shown()).toEqual([])
    // A link to a hidden target ends the search.
    await search.fill('replace the webhook secret')
    await page.locator('#rotateWebhookSecret a[href^="#schema-"]').first().click()
    await page.locator('#createJob').waitFor()
    expect(await search.inputValue()).toBe('')
  })

  test('the addresses that people try first lead to the pages', async () => {
    const page = await pages.open({}, '')
    expect(page.url()).toBe(`${service.base}/console`)
    const { origin } = new URL(service.base)
    for (const [path, target] of [
      ['/', '/console'],
      ['/console', '/console'],
      ['/docs/', '/docs'],
      ['/docs', '/docs'],
    ]) {
      await page.goto(origin + path)
      expect(page.url()).toBe(service.base + target)
    }
    const index = (await (await fetch(origin)).json()) as { links: Record<string, string> }
    expect(index.links.docs).toBe(`${service.base}/docs`)
    const noScript = await pages.open({ javaScriptEnabled: false })
    expect(await noScript.getByRole('link', { name: 'HTTP interface' }).getAttribute('href')).toBe('docs')
  })
})
