import { writeFile } from 'node:fs/promises'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryJobs } from '../../src/adapters/memory.js'
import { StemworkError } from '../../src/core/engine/errors.js'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { endedJobs } from '../http/jobs/ended-jobs.js'
import { type Service, startService } from '../http/harness.js'
import { chromiumPath, openBrowser } from './browser.js'
import {
  barriers,
  ConsolePages,
  crampedButtons,
  eventually,
  narrow,
  overflow,
  patienceMs,
  phone,
  tidyUp,
} from './console-page.js'

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 2 * patienceMs })

const key = 'the-key-of-the-operator'
const failing = defineWorkflow({
  id: 'service/failing',
  name: 'Master tapes',
  description: 'Fails, after it was tried again.',
  params: z.object({ tape: z.string().optional() }),
  inputs: [],
  outputs: {},
  async run({ step }) {
    await step.run('label', async ({ file }) => {
      await writeFile(file('label.txt').path, 'Reel')
      return file('label.txt')
    })
    await step.run('read', async () => {
      const cause = new Error('no disk at /mnt/tapes')
      throw new StemworkError('INTERNAL_ERROR', 'The disk is away.', {
        reason: 'worker_lost',
        retryable: true,
        cause,
      })
    })
  },
})

describe.skipIf(!chromiumPath)("the operator's page (needs Chromium)", () => {
  let service: Service
  let browser: Browser
  let pages: ConsolePages

  beforeAll(async () => {
    ;[service, browser] = await Promise.all([
      startService({
        http: { operator: { key }, console: true },
        engine: { owner: 'studio-1:4711', dispatch: { concurrency: 2, maxAttempts: 2, retryDelayMs: 1 } },
        workflows: [failing],
      }),
      openBrowser(),
    ])
    pages = new ConsolePages(browser, { base: service.base, key })
    const count = (status: 'FAILED' | 'STARTED') => service.engine.count({ statuses: [status] })
    for (const [workflow, name] of [
      ['service/failing', 'Reel 7'],
      ['service/held', 'A long lecture'],
      ['service/held', 'Harbour Lights'],
      ['service/held', 'Still waiting'],
    ]) {
      await service.created({ workflow, name })
      // Waits before the held jobs take both slots for good.
      if (workflow === 'service/failing') await vi.waitUntil(async () => (await count('FAILED')) === 1, patienceMs)
    }
    await vi.waitUntil(async () => (await count('STARTED')) === 2, patienceMs)
  })
  tidyUp(() => ({ browser, service }))

  async function signedIn(options: BrowserContextOptions = {}, of = pages): Promise<Page> {
    const page = await of.open({ ...options, reducedMotion: 'reduce' }, '/operator')
    await page.getByLabel('Operator key').fill(key)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    return page
  }

  /** Opens the quota of the first application, which owns all jobs. */
  async function openQuota(page: Page) {
    const choice = page.getByLabel('Control an application')
    await choice.selectOption({ index: 1 })
    await page.getByRole('button', { name: 'Quota' }).click()
    const quota = page.getByRole('dialog', { name: 'Quota of' })
    await quota.getByLabel('Jobs that may wait').waitFor()
    return quota
  }

  const queue = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

  test.each([
    ['desktop, light', { colorScheme: 'light', viewport: { width: 1120, height: 800 } }, true],
    ['phone, dark', { ...phone, colorScheme: 'dark' }, true],
    ['320 px', narrow, false],
  ] as [string, BrowserContextOptions, boolean][])(
    'has no accessibility problem that axe finds, and no horizontal scrolling: %s',
    async (_, size, withAxe) => {
      const found: unknown[] = []
      const check = async (state: string, page: Page) => {
        const problems = [...(withAxe ? await barriers(page) : []), ...(await crampedButtons(page))]
        const pixels = await overflow(page)
        if (problems.length > 0 || pixels > 0) found.push([state, problems, pixels])
      }
      const stranger = await pages.open(size, '/operator')
      await stranger.getByLabel('Operator key').fill('wrong')
      await stranger.getByRole('button', { name: 'Continue' }).click()
      await stranger.getByRole('alert').waitFor()
      await check('wrong key', stranger)

      const page = await signedIn(size)
      await check('overview', page)
      const buttons = queue(page, 'Held').getByRole('button')
      const tops = await buttons.evaluateAll((all: { getBoundingClientRect(): { top: number } }[]) =>
        all.map((one) => one.getBoundingClientRect().top),
      )
      expect([tops.length, new Set(tops).size]).toEqual([3, 1])
      await queue(page, 'Held').getByRole('button', { name: 'Limit' }).click()
      await check('limit', page)
      await page.getByRole('button', { name: 'Back' }).click()
      const quota = await openQuota(page)
      await quota.getByLabel('Jobs a day').fill('many')
      await page.keyboard.press('Enter')
      await quota.getByText('Enter a whole number from 0 on').waitFor()
      await check('quota', page)
      await page.keyboard.press('Escape')
      await page.getByRole('link', { name: 'Jobs', exact: true }).click()
      await page.getByRole('link', { name: 'Reel 7' }).waitFor()
      await check('jobs', page)
      await page.getByRole('link', { name: 'Reel 7' }).click()
      await page.getByRole('heading', { name: 'Why the last attempt failed' }).waitFor()
      await check('job', page)
      expect(found).toEqual([])
    },
  )

  test('pauses a workflow after a question, resumes it, and limits it', async () => {
    const page = await signedIn()
    const row = queue(page, 'Held')
    expect(await row.getByRole('cell').allTextContents()).toEqual(expect.arrayContaining(['1', '2', 'Open']))
    await row.getByRole('button', { name: 'Pause' }).click()
    const question = page.getByRole('dialog', { name: 'Pause Held?' })
    await question.getByRole('button', { name: 'Back' }).click()
    expect(await service.engine.schedulingRules()).toEqual([])
    await row.getByRole('button', { name: 'Pause' }).click()
    await question.getByRole('button', { name: 'Pause' }).click()
    await row.getByText('Paused', { exact: true }).waitFor()
    expect(await service.engine.schedulingRules()).toMatchObject([{ state: 'paused', target: { id: 'service/held' } }])
    await row.getByRole('button', { name: 'Resume' }).click()
    await row.getByText('Open', { exact: true }).waitFor()

    await row.getByRole('button', { name: 'Limit' }).click()
    await page.getByRole('dialog').getByLabel('Jobs that run at a time').fill('2')
    await page.getByRole('button', { name: 'Set limit' }).click()
    await row.getByRole('button', { name: 'At most 2' }).waitFor()
    expect(await service.engine.schedulingRules()).toMatchObject([{ maxRunning: 2 }])
    await service.engine.schedule({ kind: 'workflow', id: 'service/held' }, { maxRunning: null })
  })

  test("shows and changes an application's quota, by keyboard, without overwriting changes of others", async () => {
    const page = await signedIn()
    const [first] = await service.engine.applications.listApplications()
    const id = first?.id ?? ''
    const quota = await openQuota(page)
    await quota.getByText('Used today').first().waitFor()
    await quota.getByLabel('Jobs that may wait').fill('0')
    await page.keyboard.press('Enter')
    const field = quota.getByRole('textbox', { name: 'Jobs that may wait', description: /from 1 on/ })
    expect(await field.getAttribute('aria-invalid')).toBe('true')
    expect((await service.engine.limits(id)).own).toEqual({})
    await field.fill('70')
    await service.engine.setLimits(id, { jobs: 900 })
    await page.keyboard.press('Enter')
    await quota.getByRole('alert').filter({ hasText: 'Somebody else has changed these limits.' }).waitFor()
    expect((await service.engine.limits(id)).own).toEqual({ jobs: 900 })
    // The browser's own log entry of the refusal.
    expect(pages.complaints.splice(0)).toEqual([expect.stringContaining('409')])
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Quota' }).press('Enter')
    await eventually(() => quota.getByLabel('Jobs a day').inputValue()).toBe('900')
    await quota.getByLabel('Jobs that may wait').fill('70')
    await quota.getByLabel('Minutes of audio a day').fill('1.5')
    await page.keyboard.press('Enter')
    await quota.waitFor({ state: 'hidden' })
    expect((await service.engine.limits(id)).own).toEqual({ maxQueuedJobs: 70, jobs: 900, audioMinutes: 1.5 })
    await service.engine.setLimits(id, { maxQueuedJobs: null, jobs: null, audioMinutes: null })
  })

  test('counts all jobs that have ended, however many', async () => {
    const jobs = memoryJobs()
    const many = await startService({ worker: false, http: { operator: { key } }, stores: { jobs } })
    await endedJobs(jobs, 702, { fields: { workflow: 'service/held' } })
    await endedJobs(jobs, 601, { isFailed: true })
    const own = new ConsolePages(browser, { base: many.base, key })
    const page = await signedIn({}, own)
    const figures = page.getByRole('region', { name: 'Now' }).getByRole('link')
    expect(await figures.allInnerTexts()).toEqual([
      expect.stringMatching(/^0\s+Waiting$/),
      expect.stringMatching(/^0\s+Running$/),
      expect.stringMatching(/^702\s+Done in the last hour$/),
      expect.stringMatching(/^601\s+Failed in the last hour$/),
    ])
    const failures = page.getByRole('region', { name: 'Failures by reason' }).getByRole('listitem')
    expect(await failures.locator('strong').allInnerTexts()).toEqual(['601'])
    // The jobs may have ended in two of the chart's steps.
    const chart = await page.getByRole('region', { name: 'Jobs ended' }).getByRole('img').getAttribute('aria-label')
    const charted = [...(chart ?? '').matchAll(/(\d+) succeeded, (\d+) failed/g)]
    expect([1, 2].map((part) => charted.reduce((sum, found) => sum + Number(found[part]), 0))).toEqual([702, 601])
    await many.close()
  })

  test('leads from a reason to a job, its attempts, their cause and its steps', async () => {
    const page = await signedIn()
    const failures = page.getByRole('region', { name: 'Failures by reason' })
    await failures.getByRole('link', { name: 'The service failed' }).click()
    await page.getByRole('link', { name: 'Reel 7' }).click()
    const attempts = page.getByRole('region', { name: 'Attempts' })
    await attempts.getByRole('listitem').first().waitFor()
    expect(await attempts.getByRole('listitem').allTextContents()).toEqual([
      expect.stringMatching(/^Failed, tried again.*Attempt 1 on studio-1:4711.*no disk at \/mnt\/tapes$/),
      expect.stringMatching(/^Failed.*Attempt 2 on studio-1:4711.*no disk at \/mnt\/tapes$/),
    ])
    await page.getByText('caused by Error: no disk at /mnt/tapes').last().waitFor()
    const steps = page.getByRole('region', { name: 'Steps' }).getByRole('listitem')
    expect(await steps.allTextContents()).toEqual([
      expect.stringMatching(/^label · Done.*label\.txt/),
      expect.stringMatching(/^read · Failed, after 2 tries.*INTERNAL_ERROR: The disk is away\.$/),
    ])
  })

  test('shows no signature of a link, with which anyone could open the file', async () => {
    const { downloadUrl } = (await (await service.api('/upload')).json()) as { downloadUrl: string }
    expect(downloadUrl).toContain('signature=')
    const params = { tape: downloadUrl }
    const id = await service.created({ workflow: 'service/failing', name: 'A sealed tape', params })
    const page = await signedIn()
    await page.goto(`${page.url().replace(/#.*/, '')}#/job/${id}`)
    const facts = page.getByRole('region', { name: 'Facts' })
    await facts.getByText(downloadUrl.split('?', 1)[0] ?? '').waitFor()
    expect(await page.locator('main').innerText()).not.toContain('signature')
    await service.engine.delete(id)
  })

  test('and its application sees the same steps on its own page', async () => {
    const page = await pages.entered({}, service.app.key)
    await page.getByRole('link', { name: 'Reel 7' }).click()
    await page.getByRole('link', { name: 'Details' }).click()
    const steps = page.getByRole('region', { name: 'Steps' })
    await steps.waitFor()
    expect(await steps.getByRole('term').allTextContents()).toEqual(['label', 'read'])
    expect(await steps.getByRole('definition').allTextContents()).toEqual([
      expect.stringMatching(/^Done after .* · label\.txt \(1 kB\)$/),
      expect.stringMatching(/^Failed after .* · 2 tries · The disk is away\.$/),
    ])
  })

  test('shows what applications have used this month', async () => {
    const page = await signedIn()
    const rows = page.getByRole('region', { name: 'Used this month' }).getByRole('row')
    await rows.nth(1).waitFor()
    // Figures are up to a minute old, so they count the jobs that had ended by then.
    expect(await rows.nth(1).getByRole('cell').allTextContents()).toEqual([
      expect.stringMatching(/^[1-9]\d*$/),
      expect.stringMatching(/^[1-9]\d*$/),
      '< 0.1 s',
      '< 0.1 s',
    ])
    await rows.nth(1).getByRole('link').click()
    await page.getByRole('link', { name: 'Reel 7' }).waitFor()
  })

  test('finds a job by its name and cancels it', async () => {
    const page = await signedIn()
    await page.getByRole('link', { name: 'Jobs', exact: true }).click()
    await page.getByRole('searchbox', { name: 'Id, name or batch' }).fill('still wait')
    // Figures that arrive during typing leave the input unchanged.
    await page.waitForResponse(/\/overview$/)
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
    expect(await page.getByRole('searchbox', { name: 'Id, name or batch' }).inputValue()).toBe('still wait')
    await page.keyboard.press('Enter')
    await eventually(() => page.getByRole('list', { name: 'Jobs' }).getByRole('listitem').count()).toBe(1)
    await page.getByRole('link', { name: 'Still waiting' }).click()
    await page.getByText("It is number 1 in its application's queue.").waitFor()
    await page.getByRole('button', { name: 'Cancel job' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel job' }).click()
    await page.getByText('The job was canceled on request.').waitFor()
  })

  test('runs a failed job again, acts on all results of a search, and deletes a job', async () => {
    const page = await signedIn()
    const workers = page.getByRole('region', { name: 'Workers' })
    await workers.getByText('2 of 2 slots').waitFor()
    await page.goto(`${page.url().replace(/#.*/, '')}#/jobs?text=Reel`)
    await page.getByRole('link', { name: 'Reel 7' }).click()
    await page.getByRole('button', { name: 'Run again' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click()
    // Both slots are taken, so the job waits.
    await page.getByRole('button', { name: 'Cancel job' }).waitFor()
    await page.goBack()
    await page
      .getByRole('group', { name: 'All jobs of this search' })
      .getByRole('button', { name: 'Cancel all' })
      .click()
    await page
      .getByRole('dialog', { name: 'Cancel all jobs of this search?' })
      .getByRole('button', { name: 'Cancel all' })
      .click()
    await page.getByText('1 job canceled.').waitFor()
    const all = page.getByRole('group', { name: 'All jobs of this search' })
    await all.getByRole('button', { name: 'Run all again' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Run all again' }).click()
    await page.getByText('1 job queued again.').waitFor()
    await page.getByRole('link', { name: 'Reel 7' }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('button', { name: 'Delete job' }).click()
    await page.getByRole('heading', { name: 'This job no longer exists' }).waitFor()
    expect(await service.engine.count({ workflows: ['service/failing'] })).toBe(0)
    await page.goto(`${page.url().replace(/#.*/, '')}#/jobs?text=Harbour`)
    await page.getByRole('link', { name: 'Harbour Lights' }).waitFor()
    await all.getByRole('button', { name: 'Delete all' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Back' }).click()
    expect(await service.engine.count({ workflows: ['service/held'] })).toBe(3)
    await all.getByRole('button', { name: 'Delete all' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete all' }).click()
    await page.getByText('1 job deleted.').waitFor()
    await page.getByText('No such job.').waitFor()
    expect(await service.engine.count({ workflows: ['service/held'] })).toBe(2)
  })

  test('keeps its key where no script reads it, and only below its path, until the person signs out', async () => {
    const page = await signedIn()
    const readable = () =>
      page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])')
    expect(await readable()).toBe('[{},{},""]')
    expect(await page.context().cookies()).toMatchObject([
      { path: '/v1/operator', httpOnly: true, sameSite: 'Strict', expires: -1 },
    ])
    await page.reload()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Operator key').waitFor()
    expect(await page.context().cookies()).toEqual([])
  })
})
