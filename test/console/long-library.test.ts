import type { Browser, CDPSession, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { memoryJobs } from '../../src/adapters/memory.js'
import { sampleJob, sampleOutputs, succeed } from '../../src/contract/job-samples.js'
import { type Service, startService } from '../http/harness.js'
import { chromiumPath, openBrowser } from './browser.js'
import {
  barriers,
  ConsolePages,
  eventually,
  focused,
  layoutShift,
  patienceMs,
  phone,
  rowOf,
  tidyUp,
} from './console-page.js'

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 3 * patienceMs })

const songs = 10_000
const mostHeap = 15e6
const title = (number: number) => `Nocny pociąg do Łodzi, take ${number}.flac`

describe.skipIf(!chromiumPath)('a library of 10,000 songs (needs Chromium)', () => {
  let service: Service
  let browser: Browser
  let pages: ConsolePages

  beforeAll(async () => {
    const jobs = memoryJobs()
    ;[service, browser] = await Promise.all([
      startService({ http: { console: true }, stores: { jobs } }),
      openBrowser(),
    ])
    await fill(jobs, service.app.id)
    pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
  })
  tidyUp(() => ({ browser, service }))

  const rowCount = (page: Page) => page.locator('.rows li').count()
  const scrollTo = (page: Page, pixels: number | 'end') =>
    page.evaluate(`scrollTo(0, ${pixels === 'end' ? 'document.body.scrollHeight' : pixels})`)
  const offsetOf = async (page: Page, name: string) => (await rowOf(page, name).boundingBox())?.y ?? 0

  test('has only a few rows in the document and takes little memory, even when read to its end', async () => {
    const page = await pages.signedIn()
    await page.getByText(`${songs} songs`, { exact: true }).waitFor()
    await rowOf(page, title(songs - 1)).waitFor()
    const shift = await layoutShift(page)
    const height = await page.evaluate<number>('document.body.scrollHeight')
    await scrollTo(page, 'end')
    await rowOf(page, title(0)).locator('.status.succeeded').waitFor()
    expect(await rowCount(page)).toBeLessThan(50)
    expect(await page.getByRole('listitem').last().getAttribute('aria-posinset')).toBe(String(songs))
    // The list has its full height from the start.
    expect(Math.abs((await page.evaluate<number>('document.body.scrollHeight')) / height - 1)).toBeLessThan(0.05)
    expect(await shift()).toBeLessThan(0.01)
    const session = await page.context().newCDPSession(page)
    expect(await heapOf(session)).toBeLessThan(mostHeap)
    expect(await barriers(page)).toEqual([])
  })

  test('can be walked through by keyboard, and the focused row stays even if it is scrolled out of view', async () => {
    const page = await pages.signedIn()
    const link = (number: number) => rowOf(page, title(number)).getByRole('link', { name: title(number) })
    await link(songs - 1).focus()
    for (let row = 2; row <= 40; row++) {
      for (let control = 0; control < 3; control++) await page.keyboard.press('Tab')
      await focused(link(songs - row))
    }
    await scrollTo(page, 0)
    await eventually(() => page.evaluate('scrollY')).toBe(0)
    await focused(link(songs - 40))
    await page.keyboard.press('Tab')
    await focused(rowOf(page, title(songs - 40)).getByRole('button', { name: /^Delete/ }))
  })

  test.each([['desktop', {}] as const, ['phone', phone] as const])(
    'keeps its scroll position after a song was opened, and when another one arrives: %s',
    async (_, size) => {
      const page = await pages.signedIn(size)
      await scrollTo(page, 9000)
      const inView = `document.elementFromPoint(innerWidth / 2, 400).closest('li')?.querySelector('a.name')?.innerText`
      await eventually(() => page.evaluate(inView)).toBeTruthy()
      const seen = await page.evaluate<string>(inView)
      const before = await offsetOf(page, seen)
      const { job } = await service.engine.submit({ app: service.app.id, workflow: 'service/held', params: {} })
      await page.getByText(`${songs + 1} songs`, { exact: true }).waitFor()
      expect(await offsetOf(page, seen)).toBeCloseTo(before, 0)

      await rowOf(page, seen).getByRole('link', { name: seen }).click()
      await page.getByRole('heading', { name: seen }).waitFor()
      await page.getByRole('link', { name: '← All songs' }).click()
      await focused(rowOf(page, seen).getByRole('link'))
      expect(await offsetOf(page, seen)).toBeCloseTo(before, 0)
      await service.engine.delete(job.id)
      await page.getByText(`${songs} songs`, { exact: true }).waitFor()
      expect(await offsetOf(page, seen)).toBeCloseTo(before, 0)
    },
  )
})

async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage')
  return (await session.send('Runtime.getHeapUsage')).usedSize
}

async function fill(jobs: ReturnType<typeof memoryJobs>, app: string): Promise<void> {
  for (let from = 0; from < songs; from += 500) {
    const made = Array.from({ length: 500 }, (_, index) => {
      const number = from + index
      // Of jobs created at the same time, the ID decides the order.
      return sampleJob({ id: `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`, app, name: title(number) })
    })
    await jobs.createAll(made)
    await Promise.all(
      made.map(async ({ id }) => {
        const claimed = await jobs.claim({ id, owner: 'test', leaseMs: 60_000 })
        if (!claimed) throw new Error('not claimed')
        const { vocals } = sampleOutputs(id, claimed.token)
        if (!vocals) throw new Error('no output')
        const outputs = { vocals, accompaniment: { ...vocals, key: `${vocals.key}2`, fileName: 'accompaniment.wav' } }
        const details = { model: 'basic', version: 'a'.repeat(64), seconds: 215, engine: 'wasm', threads: 4 }
        await jobs.apply(id, succeed(claimed, { outputs, details, retentionMs: 1e11 }))
      }),
    )
  }
}
