import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { createClient } from '../../src/client/client.js'
import { chromiumPath, openBrowser } from '../console/browser.js'
import { type Service, startService } from '../http/harness.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const script = "import * as client from '/build/client/client.js'\nglobalThis.client = client\n"

describe.skipIf(!chromiumPath)('the client in a page (needs Chromium)', () => {
  let service: Service
  let browser: Browser
  beforeAll(async () => {
    ;[service, browser] = await Promise.all([startService(), openBrowser()])
  })
  afterAll(() => Promise.all([browser?.close(), service?.close()]))

  test('throws what a callback throws during an upload, and stops the upload', async () => {
    const page = await browser.newPage()
    const { origin } = new URL(service.base)
    await page.route(`${origin}/build/**`, (route) =>
      route.fulfill({ path: root + new URL(route.request().url()).pathname }),
    )
    await page.route(`${origin}/page`, (route) =>
      route.fulfill({ contentType: 'text/html', body: `<script type="module">${script}</script>` }),
    )
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(String(error)))
    await page.goto(`${origin}/page`)
    const outcome = await page.evaluate(
      async (options) => {
        const { client } = globalThis as unknown as { client: { createClient: typeof createClient } }
        const own = new Error('a defect of the page')
        let calls = 0
        const onProgress = () => {
          calls++
          throw own
        }
        const upload = client.createClient(options).upload(new Uint8Array(4 * 1024 ** 2), { onProgress })
        const end = await upload.then(
          () => 'stored',
          (error: unknown) => (error === own ? 'own error' : String(error)),
        )
        return { end, calls }
      },
      { baseUrl: service.base, apiKey: service.app.key },
    )
    expect(outcome).toEqual({ end: 'own error', calls: 1 })
    expect(complaints).toEqual([])
    await page.close()
  })
})
