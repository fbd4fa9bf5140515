import type { Browser, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { type Service, startService } from '../http/harness.js'
import { chromiumPath, openBrowser } from './browser.js'
import { ConsolePages, eventually, patienceMs, rowOf, tidyUp } from './console-page.js'

/** Progresses far enough for an estimate of the rest, and then stops. */
const stuck = defineWorkflow({
  id: 'service/stuck',
  name: 'Stuck',
  description: 'Does not move.',
  params: z.object({}),
  inputs: [],
  outputs: {},
  stages: [
    {
      name: 'hold',
      async run({ progress, signal }) {
        await new Promise((resolve) => setTimeout(resolve, 5000))
        progress(0.12)
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
      },
    },
  ],
})

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
  tidyUp(() => ({ browser, service }))

  test('shows its place and why it has not begun, updates both without polling, and can be stopped', async () => {
    const pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
    const id = await service.created({ priority: 0 })
    const page = await pages.signedIn()
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await page.goto(`${page.url().replace(/#.*/, '')}#/job/${id}`)
    await page.getByText('No active worker accepts jobs of service/held').waitFor()
    await page.getByText('Next in your queue').waitFor()
    const before = await service.created({ priority: 2 })
    await page.getByText('Number 2 in your queue').waitFor()
    await service.engine.schedule({ kind: 'workflow', id: 'service/held' }, { state: 'paused' })
    await page.getByText('The operator has paused such jobs').waitFor()
    await service.engine.cancel(before)
    await page.getByText('Next in your queue').waitFor()
    const own = asked.filter((path) => path.endsWith(`/job/${id}`))
    expect(own.length).toBeLessThanOrEqual(1)
    await page.getByRole('button', { name: /^Stop/ }).click()
    await page.getByText('This job was stopped.').waitFor()
  })

  /** The place in the queue that a song's row shows. */
  async function placeOf(page: Page, name: string): Promise<string | undefined> {
    const [text = ''] = await rowOf(page, name).locator('.state .quiet').allInnerTexts()
    return /^(.*) in your queue$/.exec(text)?.[1]
  }

  test('shows its place in the list, and moves up when one before it begins, is stopped or is deleted', async () => {
    const pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
    const page = await pages.signedIn()
    const ids: string[] = []
    for (const name of ['First', 'Second', 'Third', 'Fourth']) ids.push(await service.created({ name }))
    const places = () => Promise.all(['Second', 'Third', 'Fourth'].map((name) => placeOf(page, name)))
    await eventually(places).toEqual(['Number 2', 'Number 3', 'Number 4'])
    const [first = '', second = ''] = ids
    await service.engine.cancel(first)
    await eventually(places).toEqual(['Next', 'Number 2', 'Number 3'])
    await service.engine.delete(second)
    await eventually(async () => (await places()).slice(1)).toEqual(['Next', 'Number 2'])
    for (const id of ids.slice(2)) await service.engine.cancel(id)
  })

  test('the time that is left does not count down while nothing moves, and needs no right clock', async () => {
    const other = await startService({
      http: { console: true },
      engine: { dispatch: { concurrency: 1 } },
      workflows: [stuck],
    })
    const pages = new ConsolePages(browser, { base: other.base, key: other.app.key })
    const page = await pages.arriving()
    // An hour behind.
    await page.clock.install({ time: Date.now() - 60 * 60_000 })
    await page.goto(`${other.base}/console`)
    await page.getByText('Connected', { exact: true }).waitFor()
    await other.created({ workflow: 'service/stuck', name: 'Stuck' })
    const left = rowOf(page, 'Stuck').getByText(/ left$/)
    await eventually(() => left.innerText()).toMatch(/^About (\d+ seconds|a minute|\d minutes) left$/)
    const before = await left.innerText()
    await page.clock.fastForward('10:00')
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
    expect(await left.innerText()).toBe(before)
    await page.context().close()
    await other.close()
  })

  test('opened by its link, follows the song again after an error, and says so until then', async () => {
    const pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
    const id = await service.created()
    const { url } = (await (await service.api(`/job/${id}/link`, { method: 'POST', body: '{}' })).json()) as {
      url: string
    }
    const guest = await pages.open({}, new URL(url).href.slice(service.base.length))
    await guest.getByText('The song is waiting for its turn.').waitFor()
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
    for (const complaint of pages.complaints.splice(0)) expect(complaint).toContain('500')
  })
})
