import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { separate } from '../../src/core/workflows/separation/separate.js'
import { type StaticHost, startHost } from '../browser/static-host.js'
import { type Service, startService } from '../http/harness.js'
import { temporaryFolder } from '../temporary-folder.js'
import { type Firefox, firefoxPath, openFirefox } from './firefox.js'

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/audio/${name}`, import.meta.url))
const blocked = { 'network.cookie.cookieBehavior': 2 }

describe.skipIf(!firefoxPath)('Firefox (needs it; FIREFOX_PATH names one that is elsewhere)', () => {
  let host: StaticHost
  let service: Service
  let firefox: Firefox | undefined
  const folder = temporaryFolder()

  beforeAll(async () => {
    ;[host, service] = await Promise.all([startHost(), startService({ http: { console: true, operator: { key } } })])
  })
  afterEach(async () => {
    await firefox?.close()
    firefox = undefined
  })
  afterAll(async () => {
    await host?.close()
    await service?.close()
  })

  /** The stems of a file, separated in the page. */
  async function separateIn(page: Firefox, file: string): Promise<Record<string, Buffer>> {
    await page.choose(file)
    const texts = await page.evaluate<Record<string, string>>(separation)
    return Object.fromEntries(Object.entries(texts).map(([stem, text]) => [stem, Buffer.from(text, 'base64')]))
  }

  test('separates what it decodes into the stems of the server, but for two 16-bit steps', async () => {
    firefox = await openFirefox()
    await firefox.goto(host.base)
    const outputs = { vocals: join(folder, 'vocals.wav'), accompaniments: join(folder, 'accompaniments.wav') }
    for (const name of ['stereo.mp3', 'stereo.m4a', 'stereo.opus', 'vorbis.ogg']) {
      const found = await separateIn(firefox, fixture(name))
      await separate(fixture(name), { outputs, runtime: 'wasm', threads: 1 })
      for (const [stem, path] of Object.entries(outputs)) {
        const expected = await readFile(path)
        expect(found[stem]?.length, `${stem} of ${name}`).toBe(expected.length)
        let most = 0
        for (let at = 44; at < expected.length; at += 2)
          most = Math.max(most, Math.abs(expected.readInt16LE(at) - found[stem]!.readInt16LE(at)))
        expect(most, `${stem} of ${name}`).toBeLessThanOrEqual(2)
      }
    }
  })

  test.each([
    ['a private window', { 'browser.privatebrowsing.autostart': true }],
    ['a page without cookies', blocked],
  ])('says that %s has no place for stems', async (_, preferences) => {
    firefox = await openFirefox(preferences)
    await firefox.goto(host.base)
    await firefox.choose(fixture('stereo.mp3'))
    expect(await firefox.evaluate(`${separation}.catch(({ code, message }) => ({ code, message }))`)).toEqual({
      code: 'MISSING_DEPENDENCY',
      message: expect.stringContaining('Open the page in an ordinary window, and allow cookies.'),
    })
  })

  test('shows the pages where cookies are blocked, and what to do', async () => {
    firefox = await openFirefox(blocked)
    for (const [page, text] of [
      ['console', 'Allow cookies here and reload.'],
      ['operator', 'A cookie keeps you signed in'],
      ['docs', 'Your API key, for “Try it”'],
    ]) {
      await firefox.goto(`${service.base}/${page}`)
      const shown = () => firefox!.evaluate<string>('document.body.innerText')
      await expect.poll(shown).toContain(text)
    }
  })
})

const key = 'the key of an operator'

/** Separates the chosen file, with the stems in Base64. */
const separation = `(async () => {
  const [file] = document.querySelector('input').files
  const assets = { worker: '/stemwork/dist/browser/worker.js' }
  const { stems, remove } = await device.separate(file, { assets })
  const texts = {}
  for (const [stem, content] of Object.entries(stems)) {
    const bytes = new Uint8Array(await content.arrayBuffer())
    let text = ''
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
    texts[stem] = btoa(text)
  }
  await remove()
  return texts
})()`
