import { execFileSync, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { stemsWorkflow } from '../../src/core/workflows/separation/stems-workflow.js'
import { type Service, startService } from '../http/harness.js'
import { sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, openBrowser } from './browser.js'
import { barriers, ConsolePages, eventually, focused, patienceMs, phone, rowOf, send, tidyUp } from './console-page.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 3 * patienceMs, hookTimeout: 2 * patienceMs })

const hasFfmpeg = spawnSync('ffmpeg', ['-version']).error === undefined
const rate = 8000
const names = (decoders?: { ffmpeg: boolean }) => ({
  id: decoders ? 'service/all-formats' : 'service/songs',
  name: decoders ? 'Songs, with ffmpeg' : 'Songs',
  description: 'What is tested is the look at a file before it is sent.',
  stems: ['vocals' as const],
  ...(decoders ? { decoders } : {}),
})

/** Resolves once the script that keeps the focus is loaded: the first focus loads it, and no person is that quick. */
const focusKept = `(async () => {
  const isLater = ({ name }) => /\\/later-\\w+\\.js$/.test(name)
  for (;;) {
    const script = performance.getEntriesByType('resource').find(isLater)
    if (script) return void (await import(script.name))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
})()`

describe.skipIf(!chromiumPath)('files are checked before they are sent (needs Chromium)', () => {
  let service: Service
  let browser: Browser
  let pages: ConsolePages
  const folder = temporaryFolder()
  const path = (name: string) => join(folder, name)

  beforeAll(async () => {
    const tone = (seconds: number) => [sine(seconds * rate, 440, rate, 0.4)]
    await Promise.all([
      writeWav(path('song.wav'), tone(5), rate, '16'),
      writeWav(path('song without an ending'), tone(5), rate, '16'),
      writeWav(path('two minutes.wav'), tone(120), rate, '16'),
      writeWav(path('huge.wav'), tone(400), rate, '16'),
      writeFile(path('cover.mp3'), Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.alloc(2000)])),
      writeFile(path('lyrics.txt'), 'These are words about a song, and no song.\n'),
      writeFile(path('list.m3u'), '#EXTM3U\nsong.mp3\n'),
      writeFile(path('score.pdf'), '%PDF-1.7\n'),
      writeFile(path('empty.mp3'), ''),
      writeFile(path('clip.wmv'), Buffer.concat([Buffer.from('3026b2758e66cf11', 'hex'), Buffer.alloc(2000)])),
    ])
    ;[service, browser] = await Promise.all([
      startService({
        http: { console: true },
        engine: { limits: { maxFileBytes: 5_000_000, maxAudioSeconds: 60 } },
        workflows: [stemsWorkflow(names()), stemsWorkflow(names({ ffmpeg: true }))],
        worker: false,
      }),
      openBrowser(),
    ])
    pages = new ConsolePages(browser, { base: service.base, key: service.app.key })
  })
  tidyUp(() => ({ browser, service }))

  async function songs(options?: Parameters<ConsolePages['signedIn']>[0], workflow = 'Songs'): Promise<Page> {
    const page = await pages.signedIn(options)
    await page.getByLabel('Workflow').selectOption(workflow)
    return page
  }

  test.each([['desktop', {}] as const, ['phone', phone] as const])(
    'a file that is not a song, too long or too large is refused with the reason and not sent: %s',
    async (_, device) => {
      const page = await songs(device)
      const sent: string[] = []
      page.on('request', (request) => request.method() === 'PUT' && sent.push(request.url()))
      const reasons: Record<string, string> = {
        'cover.mp3': 'This file is an image, not audio.',
        'lyrics.txt': 'This file is text, not audio.',
        'list.m3u': 'This file is a playlist, which only names songs, not audio.',
        'score.pdf': 'This file is a PDF document, not audio.',
        'empty.mp3': 'This file is empty.',
        'clip.wmv': 'This service cannot read .wmv files.',
        'two minutes.wav': 'This recording lasts 2 min. The service takes at most 1 min. Send it in parts.',
        'huge.wav': 'This file is 6.4 MB. The service takes at most 5.0 MB.',
      }
      await send(page, ...Object.keys(reasons).map(path))
      for (const [name, reason] of Object.entries(reasons)) {
        await rowOf(page, name).locator('.status.refused').waitFor()
        expect(await rowOf(page, name).getByRole('alert').innerText()).toContain(reason)
      }
      await eventually(() => page.getByRole('status').allInnerTexts()).toContainEqual(
        expect.stringMatching(/ was not sent\. This /),
      )
      expect(sent).toEqual([])
      expect(await barriers(page)).toEqual([])
    },
  )

  test('a song passes, whatever its name; a refused file can still be sent; the focus stays in the list', async () => {
    const page = await songs()
    await send(page, path('lyrics.txt'), path('song.wav'), path('song without an ending'))
    // Files are sent one after another, and the refused file delays none.
    await page.locator('.rows li.queued').nth(1).waitFor()
    expect(await page.locator('.rows li.queued .name').allInnerTexts()).toEqual(['song without an ending', 'song.wav'])
    await rowOf(page, 'lyrics.txt').getByRole('button', { name: 'Send anyway: lyrics.txt' }).focus()
    await page.evaluate(focusKept)
    await page.keyboard.press('Enter')
    await eventually(() => page.locator('.rows li.queued').count()).toBe(3)
    expect(await page.evaluate('document.activeElement.tagName')).not.toBe('BODY')

    await send(page, path('score.pdf'))
    await page.getByRole('button', { name: 'Dismiss score.pdf' }).focus()
    await page.keyboard.press('Enter')
    await eventually(() => page.locator('.rows li.upload').count()).toBe(0)
    await focused(page.getByRole('heading', { name: 'Send a song' }))
  })

  test.skipIf(!hasFfmpeg)('a song of exactly the maximum length passes, even with padding (needs ffmpeg)', async () => {
    // The browser reports a duration of 60.003 s.
    const minute = ['-f', 'lavfi', '-i', 'anoisesrc=r=44100:d=60', '-ac', '2', '-c:a', 'libvorbis']
    execFileSync('ffmpeg', ['-loglevel', 'error', ...minute, path('a minute.ogg')])
    const page = await songs()
    await send(page, path('a minute.ogg'))
    await page.locator('.rows li.queued').filter({ hasText: 'a minute.ogg' }).waitFor()
  })

  test('a service with ffmpeg accepts what ffmpeg can read; a workflow of another kind accepts any file', async () => {
    const page = await songs({}, 'Songs, with ffmpeg')
    const before = await page.locator('.rows li.queued').count()
    await send(page, path('clip.wmv'))
    await eventually(() => page.locator('.rows li.queued').count()).toBe(before + 1)
    await page.getByLabel('Workflow').selectOption('Vocals and accompaniment')
    await send(page, path('score.pdf'))
    await eventually(() => page.locator('.rows li.queued').count()).toBe(before + 2)
  })
})
