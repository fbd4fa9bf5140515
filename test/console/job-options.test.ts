import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { createClient, type Job } from '../../src/client/client.js'
import { writeSharesModel } from '../models/shares-model.js'
import { readAudio, sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, type ConsoleService, openBrowser, startConsole } from './browser.js'
import {
  barriers,
  ConsolePages,
  eventually,
  focused,
  narrow,
  overflow,
  patienceMs,
  phone,
  rowOf,
  send,
  tidyUp,
} from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 5 * patienceMs, hookTimeout: 3 * patienceMs })

const rate = 44_100
const amplitude = 0.4
const sizes: [name: string, size: BrowserContextOptions][] = [
  ['desktop', { colorScheme: 'light' }],
  ['phone, dark', { ...phone, colorScheme: 'dark' }],
]

/** Options of each workflow, in the words of the page. */
const titlesOf = {
  Loudness: [
    'Picture of the loudness',
    'Normalize to (LUFS)',
    'Peak ceiling (dBTP)',
    'File format',
    'Keep title, artist and cover',
  ],
  Transcode: [
    'File format',
    'Sample rate (Hz)',
    'Channels',
    'Start (s)',
    'Length (s)',
    'Fade in (s)',
    'Fade out (s)',
    'Gain (dB)',
    'Tempo (times)',
    'Pitch (semitones)',
    'Dither',
    'Keep title, artist and cover',
  ],
  Analyze: ['Peaks for players', 'Labels for Audacity'],
  Notes: [
    'Clear beginnings',
    'Clear tones',
    'Shortest note (ms)',
    'Lowest frequency (Hz)',
    'Highest frequency (Hz)',
    'Soft beginnings',
    'Pitch bends',
    'Tempo (bpm)',
  ],
  'Karaoke and practice': [
    'File format',
    'Level of the guide (dB)',
    'Lyrics',
    'Keep title, artist and cover',
    'Quality',
  ],
}
/** Choices whose option names are self-explanatory. */
const isChoice = (title: string) => ['File format', 'Channels', 'Quality'].includes(title)

describe.skipIf(!chromiumPath)('the options of a job in the console (needs Chromium)', () => {
  let service: ConsoleService
  let browser: Browser
  let pages: ConsolePages
  const folder = temporaryFolder()
  /** A model with four stems, which are shares of the song. */
  let ownModel: string
  const song = (name: string) => join(folder, `${name}.wav`)

  beforeAll(async () => {
    const tone = sine(3 * rate, 440, rate, amplitude)
    // Each test has its own file names, so that no row is mistaken for that of an earlier test.
    for (const [label] of sizes)
      for (const name of ['quieter', 'shorter', 'never sent'])
        await writeWav(song(`${name} (${label})`), [tone, tone], rate, '16')
    await writeWav(song('used'), [tone, tone], rate, '16')
    for (const name of [
      'other rate',
      'practised',
      'suggested',
      'without',
      'as it is',
      'louder',
      'lower rate',
      'one',
      'two',
      'better',
      'in four',
    ])
      await writeWav(song(name), [tone, tone], rate, '16')
    const four = await writeSharesModel(folder, 'four', { drums: 0.1, bass: 0.2, other: 0.3, vocals: 0.4 })
    ownModel = four.manifest
    ;[service, browser] = await Promise.all([
      startConsole({
        models: ['--allowed-models', 'embedded', '--allowed-models', ownModel, '--stems-4', ownModel],
      }),
      openBrowser(),
    ])
    pages = new ConsolePages(browser, service)
  })
  tidyUp(() => ({ browser, service }))

  /** The job with this name, from the service, once its row shows that it is done. */
  async function done(page: Page, name: string): Promise<Job> {
    const row = rowOf(page, `${name}.wav`)
    await row.locator('.status.succeeded').waitFor()
    const client = createClient({ baseUrl: service.base, apiKey: service.key })
    return client.getJob((await row.getAttribute('data-job')) ?? '')
  }

  async function resultFile(job: Job, output: string): Promise<string> {
    const path = join(folder, `${job.id}.${job.files?.[output]?.fileName.split('.').at(-1)}`)
    await writeFile(path, new Uint8Array(await (await fetch(job.result?.[output] ?? '')).arrayBuffer()))
    return path
  }

  async function opened(size: BrowserContextOptions, workflow: string): Promise<Page> {
    const page = await pages.signedIn(size)
    await page.getByLabel('Workflow').first().selectOption(workflow)
    await page.getByText('Options').click()
    return page
  }

  async function checkLayout(page: Page): Promise<void> {
    expect([await barriers(page), await overflow(page)]).toEqual([[], 0])
    const before = page.viewportSize()
    await page.setViewportSize(narrow.viewport)
    expect(await overflow(page)).toBe(0)
    if (before) await page.setViewportSize(before)
  }

  test.each(sizes)('a song gets the requested loudness, and an invalid number is not sent: %s', async (label, size) => {
    const page = await opened(size, 'Loudness')
    const target = page.getByLabel('Normalize to (LUFS)')
    // The peak ceiling is of the audio that only a target writes.
    expect(await page.getByLabel('Peak ceiling (dBTP)').count()).toBe(0)
    await target.fill('-x')
    await target.blur()
    const problem = page.getByRole('alert')
    expect(await problem.innerText()).toBe('Enter a number from -70 to 0.')
    expect(await target.getAttribute('aria-describedby')).toBe('param-normalizeTo-hint param-normalizeTo-problem')
    expect(await target.getAttribute('aria-invalid')).toBe('true')
    await checkLayout(page)
    await page.getByText('Options').click()
    await send(page, song(`never sent (${label})`))
    await focused(target)
    expect(await rowOf(page, `never sent (${label})`).count()).toBe(0)

    await target.fill('-30')
    await target.blur()
    await eventually(() => problem.count()).toBe(0)
    await page.getByLabel('Peak ceiling (dBTP)').fill('-3.5')
    await page.getByLabel('Picture of the loudness').uncheck()
    await page.getByText('Options (3 set)').waitFor()
    await checkLayout(page)
    await send(page, song(`quieter (${label})`))
    const job = await done(page, `quieter (${label})`)
    expect(job.workflowParams).toEqual({
      inputUrl: expect.any(String),
      normalizeTo: -30,
      ceiling: -3.5,
      picture: false,
    })
    expect(Object.keys(job.result ?? {}).sort()).toEqual(['normalized', 'report'])
    const report = (await (await fetch(job.result?.report ?? '')).json()) as { integratedLufs: number }
    const [left] = (await readAudio(await resultFile(job, 'normalized'))).channels
    const gainDb = 20 * Math.log10(left!.reduce((most, value) => Math.max(most, value), 0) / amplitude)
    expect(report.integratedLufs + gainDb).toBeCloseTo(-30, 1)
  })

  test('the usage of the application this month is shown beside its keys', async () => {
    const page = await pages.signedIn()
    await send(page, song('used'))
    await done(page, 'used')
    await page.getByRole('link', { name: 'API keys' }).click()
    const row = page.getByRole('list', { name: 'Used this month' }).getByRole('listitem')
    await row.filter({ hasText: 'stems-vocals-accompaniment' }).waitFor()
    const [text] = await row.filter({ hasText: 'stems-vocals-accompaniment' }).allTextContents()
    expect(text).toMatch(
      /\d+ jobs?(, \d+ failed)? · (\d+ min )?[\d.]+ s of audio · (\d+ min )?[\d.]+ s of processor time$/,
    )
    expect(text).not.toContain('< 0.1 s')
  })

  test.each(sizes)(
    'a song is cut and written at another rate; the settings outlive a reload: %s',
    async (label, size) => {
      const page = await opened(size, 'Transcode')
      await page.getByLabel('Sample rate (Hz)').fill('22050')
      await page.getByLabel('Channels').selectOption('1')
      await page.getByLabel('Start (s)').fill('1')
      await page.getByLabel('Length (s)').fill('0,5')
      await page.getByLabel('Dither').uncheck()
      await checkLayout(page)
      await page.reload()
      await page.getByText('Options (5 set)').click()
      expect(await page.getByLabel('Length (s)').inputValue()).toBe('0,5')
      // Another workflow has its own options; these return with theirs.
      await page.getByLabel('Workflow').first().selectOption('Analyze')
      await page.getByLabel('Peaks for players').check()
      await page.getByText('Options (1 set)').waitFor()
      await page.getByLabel('Workflow').first().selectOption('Transcode')
      await page.getByText('Options (5 set)').waitFor()
      await send(page, song(`shorter (${label})`))
      const job = await done(page, `shorter (${label})`)
      expect(job.workflowParams).toEqual({
        inputUrl: expect.any(String),
        sampleRate: 22_050,
        channels: 1,
        startSeconds: 1,
        lengthSeconds: 0.5,
        dither: false,
      })
      const { sampleRate, channels } = await readAudio(await resultFile(job, 'audio'))
      expect([sampleRate, channels.map(({ length }) => length)]).toEqual([22_050, [11_025]])
    },
  )

  test('lyrics are typed in lines, and are among the files for practice', async () => {
    const page = await opened({}, 'Karaoke and practice')
    await page.getByLabel('Lyrics').fill('One tone\nand no more\n')
    await page.getByLabel('Level of the guide (dB)').fill('-12')
    await checkLayout(page)
    await send(page, song('practised'))
    const job = await done(page, 'practised')
    expect(job.workflowParams).toEqual({
      inputUrl: expect.any(String),
      lyrics: 'One tone\nand no more',
      guideDb: -12,
    })
    expect(Object.keys(job.result ?? {})).toEqual(expect.arrayContaining(['accompaniments', 'guide', 'analysis']))
    await page.getByRole('link', { name: 'practised' }).click()
    const isMuted = (stem: string) => page.getByRole('button', { name: `Mute ${stem}` }).getAttribute('aria-pressed')
    // The guide contains the accompaniments, too.
    expect(await isMuted('Guide')).toBe('true')
    expect(await isMuted('Accompaniment')).toBe('false')
    // The player uses the beats and key that the job has found.
    await page
      .locator('.title')
      .getByText(/beat|bpm/)
      .waitFor()
    expect(await page.getByRole('button', { name: 'Find the beats' }).count()).toBe(0)
  })

  test('the options for stems use the words of musicians; models are described by quality and speed', async () => {
    const page = await opened({}, 'Stems: vocals and accompaniment')
    const labels = page.locator('.fields label')
    await eventually(async () => (await labels.allInnerTexts()).map((text) => text.trim())).toEqual([
      'Pictures of the waveforms',
      'Tempo, key and beats',
      'File format',
      'Keep title, artist and cover',
      'Quality',
      'Batch',
      'Choose for each song',
    ])
    await page.getByText('Also makes a picture (PNG) of each stem').waitFor()
    expect(await page.getByLabel('Quality').locator('option').allInnerTexts()).toEqual([
      'Basic quality, fastest (embedded) (default)',
      'four',
    ])
    // Options that the page suggests are sent although nobody set them; a person can remove them.
    await page.getByText('Options', { exact: true }).waitFor()
    await send(page, song('suggested'))
    expect((await done(page, 'suggested')).workflowParams).toMatchObject({ analysis: true })
    await page.getByLabel('Tempo, key and beats').uncheck()
    await page.getByText('Options (1 set)').waitFor()
    await send(page, song('without'))
    const without = await done(page, 'without')
    expect(without.workflowParams).toMatchObject({ analysis: false })
    // The result's page says how to improve it, with the command.
    await rowOf(page, 'without.wav').getByRole('link', { name: 'without.wav' }).click()
    await page.getByText('stemwork models pull recommended').waitFor()
  })

  test('a person chooses between models, and between two stems and four', async () => {
    const page = await opened({}, 'Stems: vocals and accompaniment')
    await page.getByLabel('Quality').selectOption('four')
    await send(page, song('better'))
    const better = await done(page, 'better')
    expect([better.workflowParams.model, better.details?.model]).toMatchObject([ownModel, { name: 'four' }])
    const [voice] = (await readAudio(await resultFile(better, 'vocals'))).channels
    expect(voice!.reduce((most, value) => Math.max(most, value), 0)).toBeCloseTo(0.4 * amplitude, 2)

    await page.getByLabel('Workflow').first().selectOption('Stems: vocals, drums, bass and other')
    await send(page, song('in four'))
    await done(page, 'in four')
    await rowOf(page, 'in four.wav').getByRole('link', { name: 'in four.wav' }).click()
    const lanes = page.getByRole('region', { name: 'Listen' }).getByRole('heading', { level: 2 })
    await eventually(() => lanes.allTextContents()).toEqual(['Vocals 1', 'Drums 2', 'Bass 3', 'Other 4'])
    for (const stem of ['Vocals', 'Drums', 'Bass', 'Other'])
      await page.getByRole('link', { name: new RegExp(`^${stem} WAV`) }).waitFor()
  })

  test('each option of the other workflows has a title and help of its own', async () => {
    const page = await opened({}, 'Loudness')
    const fields = page.locator('.fields .field')
    const labels = page.locator('.fields label')
    const titles = async () => (await labels.allInnerTexts()).map((text) => text.trim())
    const helps = () =>
      fields
        .filter({ has: page.locator('[id^=param]:not(select)') })
        .locator('p')
        .allInnerTexts()
    const last = ['Batch', 'Choose for each song']
    // Some options are of the audio that is written only with a target.
    await page.getByLabel('Normalize to (LUFS)').fill('-14')
    for (const [workflow, own] of Object.entries(titlesOf)) {
      await page.getByLabel('Workflow').first().selectOption(workflow)
      await eventually(titles).toEqual([...own, ...last])
      expect([workflow, (await helps()).length]).toEqual([workflow, own.filter((title) => !isChoice(title)).length])
      if (workflow === 'Transcode')
        expect(await page.getByLabel('Channels').locator('option').allInnerTexts()).toEqual([
          'Default',
          'Mono',
          'Stereo',
        ])
      expect((await helps()).filter((text) => /^Whether|param|default|integer|JSON schema/i.test(text))).toEqual([])
    }
  })

  test('an error that only the service finds is shown at its field, and the corrected value is sent', async () => {
    const page = await opened({}, 'Transcode')
    const hertz = page.getByLabel('Sample rate (Hz)')
    await page.getByLabel('Format').selectOption('MP3 320 kbit/s')
    await hertz.fill('44000')
    await send(page, song('other rate'))
    const problem = page.locator('#param-sampleRate-problem')
    expect(await problem.innerText()).toContain('MP3 has no rate of 44000 Hz: expected one of 44100, 48000')
    expect(await hertz.getAttribute('aria-describedby')).toContain('param-sampleRate-problem')
    expect(await barriers(page)).toEqual([])
    await hertz.fill('44100')
    await eventually(() => problem.count()).toBe(0)
    await page.getByRole('button', { name: 'Send again: other rate.wav' }).click()
    const job = await done(page, 'other rate')
    expect(job.workflowParams).toMatchObject({ format: 'mp3', sampleRate: 44_100 })
    expect(job.files?.audio?.contentType).toBe('audio/mpeg')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).toBe('{}')
    expect(pages.complaints.splice(0)).toEqual([expect.stringContaining('400 (Bad Request)')])
  })
  test('each of several files has its own options, which are read when its upload has ended', async () => {
    const page = await opened({}, 'Transcode')
    const network = await page.context().newCDPSession(page)
    const upload = (bytesPerSecond: number) =>
      network.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput: bytesPerSecond,
      })
    const own = (name: string) => page.getByRole('group', { name: `Options of ${name}.wav` })
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    await upload(50_000)
    await page.getByLabel('Start (s)').fill('1')
    await send(page, song('as it is'), song('lower rate'), song('louder'))
    await rowOf(page, 'as it is').locator('.status.sending').waitFor()

    await button('Options of lower rate.wav').click()
    // The options at the time of the drop; the form above applies to later songs.
    expect(await own('lower rate').getByLabel('Start (s)').inputValue()).toBe('1')
    await own('lower rate').getByLabel('Format').selectOption('MP3 320 kbit/s')
    await own('lower rate').getByLabel('Sample rate (Hz)').fill('44000')
    await button('Options of louder.wav').click()
    await own('louder').getByLabel('Workflow').selectOption('Loudness')
    await own('louder').getByLabel('Normalize to (LUFS)').fill('-9')
    await checkLayout(page)
    await page.locator('summary').click()
    await upload(-1)
    expect((await done(page, 'as it is')).workflowParams).toEqual({ inputUrl: expect.any(String), startSeconds: 1 })
    for (const name of ['lower rate', 'louder']) {
      await rowOf(page, name).getByText('Ready to send').waitFor()
      await button(`Send ${name}.wav`).click()
    }

    // The service's objection to an option is shown in the row, and nowhere else.
    const problem = own('lower rate').getByRole('alert')
    expect(await problem.innerText()).toContain('MP3 has no rate of 44000 Hz')
    expect(await page.locator('#param-sampleRate-problem').count()).toBe(0)
    await own('lower rate').getByLabel('Sample rate (Hz)').fill('48000')
    await button('Send again: lower rate.wav').click()
    expect((await done(page, 'lower rate')).workflowParams).toMatchObject({ format: 'mp3', sampleRate: 48_000 })
    const louder = await done(page, 'louder')
    expect([louder.workflow.name, louder.workflowParams]).toEqual([
      'Loudness',
      { inputUrl: expect.any(String), normalizeTo: -9 },
    ])
    expect(pages.complaints.splice(0)).toEqual([expect.stringContaining('400 (Bad Request)')])
  })

  test('several files wait on request and share their options; an invalid option holds them back', async () => {
    const page = await opened(phone, 'Transcode')
    await page.getByLabel('Choose for each song').check()
    await page.locator('summary').click()
    await send(page, song('one'), song('two'))
    for (const name of ['one', 'two']) await rowOf(page, name).getByText('Ready to send').waitFor()
    await page.getByRole('button', { name: 'Options of one.wav' }).click()
    const own = page.getByRole('group', { name: 'Options of one.wav' })
    await own.getByLabel('Batch').fill('Both')
    await own.getByLabel('Length (s)').fill('-1')
    await checkLayout(page)
    await page.getByRole('button', { name: 'Send all' }).click()
    await focused(own.getByLabel('Length (s)'))
    await own.getByLabel('Length (s)').fill('0.5')
    await own.getByRole('button', { name: 'Use for all files' }).click()
    await page.getByText('All 2 songs have these options.').first().waitFor()
    await page.getByRole('button', { name: 'Send all' }).click()
    for (const name of ['one', 'two']) {
      const { batchName, workflowParams } = await done(page, name)
      expect([batchName, workflowParams]).toEqual(['Both', { inputUrl: expect.any(String), lengthSeconds: 0.5 }])
    }
  })
})
