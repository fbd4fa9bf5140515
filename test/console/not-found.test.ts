import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Service, startService } from '../http/harness.js'
import { chromiumPath, openBrowser } from './browser.js'
import { barriers, ConsolePages, overflow, patienceMs, phone, tidyUp } from './console-page.js'

vi.setConfig({ testTimeout: patienceMs, hookTimeout: patienceMs })

const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

describe('an address that the service does not have', () => {
  let service: Service
  let bare: Service
  beforeAll(async () => {
    ;[service, bare] = await Promise.all([
      startService({ http: { console: true } }),
      startService({ http: { docs: false } }),
    ])
  })
  afterAll(() => Promise.all([service.close(), bare.close()]))

  test.each([
    undefined,
    '*/*',
    'application/json',
    'application/json, text/plain, */*',
    'application/json, text/html',
    'text/html;q=0.5, application/json;q=0.9',
    'text/html;q=0, */*',
    'text/html, application/problem+json',
    'image/avif,image/webp,*/*;q=0.8',
  ])('is answered in JSON to a program that accepts %s', async (accept) => {
    const answer = await fetch(`${service.base}/nothing`, accept === undefined ? {} : { headers: { accept } })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      404,
      accept?.includes('problem') ? 'application/problem+json' : 'application/json',
    ])
    expect(await answer.json()).toMatchObject({
      code: 'NOT_FOUND',
      status: 404,
      message: expect.stringContaining('The paths of this service begin with "/v1/"') as string,
      requestId: answer.headers.get('x-request-id'),
    })
  })

  test('is a page only for browsers that read: programs that write, and other errors, get JSON', async () => {
    const headers = { accept: browserAccept }
    const contentType = async (path: string, method: string) =>
      (await fetch(service.base + path, { method, headers })).headers.get('content-type')
    expect(await contentType('/nothing', 'GET')).toBe('text/html; charset=utf-8')
    expect(await contentType('/nothing', 'HEAD')).toBe('text/html; charset=utf-8')
    expect(await contentType('/nothing', 'POST')).toBe('application/json')
    expect(await contentType('/job', 'GET')).toBe('application/json')
    expect(await contentType('/healthz', 'DELETE')).toBe('application/json')
  })

  test('is a page under the same policy as the others, without links to pages that are turned off', async () => {
    const headers = { accept: browserAccept }
    const answer = await fetch(`${service.base}/nothing/"><script>`, { headers })
    const reference = await fetch(`${service.base}/docs`)
    for (const name of ['content-security-policy', 'referrer-policy', 'x-content-type-options'])
      expect([name, answer.headers.get(name)]).toEqual([name, reference.headers.get(name)])
    expect([answer.headers.get('cache-control'), answer.headers.get('vary')]).toEqual(['no-store', 'accept'])
    expect(await answer.text()).not.toContain('<script')
    const alone = await fetch(`${bare.base}/nothing`, { headers })
    expect([alone.status, alone.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
    expect(await alone.text()).not.toMatch(/href/)
  })

  describe.skipIf(!chromiumPath)('in a browser (needs Chromium)', () => {
    let browser: Browser
    let pages: ConsolePages
    beforeAll(async () => {
      browser = await openBrowser()
      pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
    })
    tidyUp(() => ({ browser }))

    test.each([
      ['below the base path, desktop', '/nothing', { colorScheme: 'light' as const }],
      ['deep below it, phone', '/nothing/at/all/', { ...phone, colorScheme: 'dark' as const }],
      ['outside of it', '/../nothing', { colorScheme: 'dark' as const }],
    ])('looks like the service and leads to its pages: %s', async (_, path, options) => {
      const page = await pages.open(options, path)
      await page.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
      expect(await page.locator('main').innerText()).toContain(`begin with ${service.base}/.`)
      const ground = await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')
      expect(ground).toBe(options.colorScheme === 'dark' ? 'rgb(20, 22, 26)' : 'rgb(246, 245, 242)')
      expect([await barriers(page), await overflow(page)]).toEqual([[], 0])
      await page.getByRole('link', { name: 'HTTP interface' }).click()
      await page.getByRole('heading', { name: 'Create a job' }).waitFor()
      await page.goBack()
      await page.getByRole('link', { name: 'Console' }).click()
      await page.getByLabel('API key').waitFor()
      expect(page.url()).toBe(`${service.base}/console`)
    })
  })
})
