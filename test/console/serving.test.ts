import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../http/harness.js'

let service: Service
beforeAll(async () => {
  service = await startService({ http: { console: true, publicUrl: 'https://stems.example.org/v1' } })
})
afterAll(() => service.close())

describe('the console', () => {
  test('does not exist unless the host turns it on', async () => {
    const plain = await startService()
    expect((await fetch(`${plain.base}/console`)).status).toBe(404)
    expect((await fetch(`${plain.base}/console/app.js`)).status).toBe(404)
    await plain.close()
  })

  test('is a page whose policy allows its own script and style, the service, and nothing else', async () => {
    const page = await fetch(`${service.base}/console`)
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy.split('; ')).toEqual([
      "default-src 'none'",
      "script-src 'self' 'wasm-unsafe-eval'",
      "worker-src 'self'",
      "style-src 'self'",
      "img-src 'self'",
      "manifest-src 'self'",
      'media-src blob:',
      "connect-src 'self' https://stems.example.org",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ])
    const html = await page.text()
    expect(html).not.toMatch(/<style|style=|<script>|\son\w+=/)
    const addresses = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address)
    expect(addresses).toEqual([
      'console/icon.svg',
      'console/console.css',
      'console/app.js',
      'console/app.webmanifest',
      'console/icon.png',
      'docs',
    ])
    for (const address of addresses) expect((await fetch(new URL(address!, page.url))).status).toBe(200)
  })

  test('is found with a slash at the end too', async () => {
    const answer = await fetch(`${service.base}/console/`)
    expect([answer.status, answer.redirected, answer.url]).toEqual([200, true, `${service.base}/console`])
  })

  test('serves its files with their types, and not again while they are unchanged', async () => {
    const script = await fetch(`${service.base}/console/app.js`)
    expect([script.headers.get('content-type'), script.headers.get('x-content-type-options')]).toEqual([
      'text/javascript; charset=utf-8',
      'nosniff',
    ])
    const icon = await fetch(`${service.base}/console/icon.png`)
    expect(icon.headers.get('content-type')).toBe('image/png')
    const png = Buffer.from(await icon.arrayBuffer())
    // A whole image of the size that iOS requests.
    expect([png.subarray(1, 4).toString(), png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual(['PNG', 180, 180])
    expect(png.subarray(-8, -4).toString()).toBe('IEND')
    const again = await fetch(`${service.base}/console/app.js`, {
      headers: { 'if-none-match': script.headers.get('etag') ?? '' },
    })
    expect(again.status).toBe(304)
    expect(await (await fetch(`${service.base}/console/NOTICE.txt`)).text()).toContain('The MIT License')
  })

  test('serves compressed files to clients that accept them, and the first script in at most 22 kB', async () => {
    const ask = (name: string, encoding: string) =>
      fetch(`${service.base}/console/${name}`, { headers: { 'accept-encoding': encoding } })
    const first = new Set(['app.js'])
    const sizes = { gzip: 0, br: 0 }
    for (const name of first) {
      const plain = await (await ask(name, 'identity')).text()
      for (const [, imported] of plain.matchAll(/(?:from|import)\s*"\.\/([\w-]+\.js)"/g)) first.add(imported!)
      for (const [accepted, sent] of [
        ['gzip, br;q=0', 'gzip'],
        ['gzip, deflate, br', 'br'],
      ] as const) {
        const answer = await ask(name, accepted)
        expect([answer.headers.get('content-encoding'), answer.headers.get('vary')]).toEqual([sent, 'accept-encoding'])
        sizes[sent] += Number(answer.headers.get('content-length'))
        expect(await answer.text()).toBe(plain)
      }
    }
    expect(first.size).toBe(2)
    expect(sizes.gzip).toBeLessThanOrEqual(22_000)
    expect(sizes.br).toBeLessThan(sizes.gzip)
    expect((await ask('app.js', 'identity')).headers.get('content-encoding')).toBeNull()
  })

  test.each(['..%2f..%2fpackage.json', 'constructor', 'app.js.map', 'app.js/x', 'of-an-older-version.js'])(
    'has no file %s',
    async (name) => {
      expect((await fetch(`${service.base}/console/${name}`)).status).toBe(404)
    },
  )

  test('loads nothing from elsewhere', async () => {
    for (const part of ['app.js', 'console.css']) {
      const text = await (await fetch(`${service.base}/console/${part}`)).text()
      const addresses = [...text.matchAll(/https?:\/\/[^"'`\s)]+/g)].map(([address]) => address)
      // Names of XML languages, a base for relative links, an example in a message: addresses that are never requested.
      const names = /^http:\/\/(www\.w3\.org\/|localhost$)|^https:\/\/stems\.example\.org\//
      expect(addresses.filter((address) => !names.test(address))).toEqual([])
    }
  })

  test('is not part of the documented interface', async () => {
    const { paths } = (await (await fetch(`${service.base}/openapi.json`)).json()) as { paths: Record<string, unknown> }
    expect(Object.keys(paths).filter((path) => path.includes('console'))).toEqual([])
  })
})
