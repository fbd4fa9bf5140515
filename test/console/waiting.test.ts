import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Service, startService } from '../http/harness.js'
import { chromiumPath, openBrowser } from './browser.js'
import { ConsolePages, patienceMs } from './console-page.js'

vi.setConfig({ testTimeout: 3 * patienceMs, hookTimeout: 2 * patienceMs })

describe.skipIf(!chromiumPath)('a song that waits (needs Chromium)', () => {
  let service: Service
  let browser: Browser
  beforeAll(async () => {
    ;[service, browser] = await Promise.all([
      startService({ http: { console: true, limits: { heartbeatMs: 200 } }, worker: false }),
      openBrowser(),
    ])
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  test('shows its place and why it is not begun, follows both without asking again, and can be stopped', async () => {
    const pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
    const submit = async (priority: number) => {
      const body = JSON.stringify({ workflow: 'service/held', params: {}, priority })
      const answer = await service.api('/job', { method: 'POST', body })
      return ((await answer.json()) as { id: string }).id
    }
    const id = await submit(0)
    const page = await pages.signedIn()
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await page.goto(`${page.url().replace(/#.*/, '')}#/job/${id}`)
    await page.getByText('No active worker accepts jobs of service/held').waitFor()
    await page.getByText('Next in your queue').waitFor()
    const before = await submit(2)
    await page.getByText('Number 2 in your queue').waitFor()
    await service.engine.schedule({ kind: 'workflow', id: 'service/held' }, { state: 'paused' })
    await page.getByText('The operator has paused such jobs').waitFor()
    await service.engine.cancel(before)
    await page.getByText('Next in your queue').waitFor()
    const own = asked.filter((path) => path.endsWith(`/job/${id}`))
    expect(own.length).toBeLessThanOrEqual(1)
    await page.getByRole('button', { name: /^Stop/ }).click()
    await page.getByText('This job was stopped.').waitFor()
    expect(pages.complaints).toEqual([])
  })

  test('by its link, it goes on after an error, and says so until then', async () => {
    const pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
    const body = JSON.stringify({ workflow: 'service/held', params: {} })
    const { id } = (await (await service.api('/job', { method: 'POST', body })).json()) as { id: string }
    const { url } = (await (await service.api(`/job/${id}/link`, { method: 'POST', body: '{}' })).json()) as {
      url: string
    }
    const guest = await pages.open({}, new URL(url).href.slice(service.base.length))
    await guest.getByText('The song waits for its turn.').waitFor()
    let isBroken = true
    await guest.route(`**/job/${id}`, async (route) => {
      if (isBroken) await route.fulfill({ status: 500, body: 'out of order' })
      else await route.continue()
    })
    await guest.getByRole('alert').waitFor()
    isBroken = false
    await service.engine.cancel(id)
    await guest.getByText('This job was stopped.').waitFor()
    expect(await guest.getByRole('alert').count()).toBe(1)
  })
})
