import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { separateStream } from '../../src/live.js'
import { chromiumPath, openBrowser, optimizingLittle } from '../console/browser.js'
import { freePort } from '../servers/found-server.js'
import { joined, maxDifference, noise, sine, writeWav } from '../separation/tracks.js'
import { type StaticHost, startHost } from './static-host.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

const rate = 44_100
const assets = {
  liveWorker: '/stemwork/dist/browser/live-worker.js',
  liveProcessor: '/stemwork/dist/browser/live-processor.js',
}

/** Functions of the package in the pages. */
interface Device {
  separateStream(source: unknown, options: object): AsyncIterable<{ stems: Record<string, Float32Array[]> }>
  createLiveNode(context: unknown, options: object): Promise<LiveNode>
}
interface LiveNode {
  node: AudioNodes
  latencySeconds: number
  ended: Promise<void>
  close(): void
}
interface AudioNodes {
  connect(node: unknown, output?: number, input?: number): AudioNodes
  start(): void
}
interface AudioPage {
  device: Device
  Uint8Array: {
    new (buffer: ArrayBufferLike): { toBase64(): string }
    fromBase64(text: string): { buffer: ArrayBuffer }
  }
  OfflineAudioContext: new (
    channels: number,
    length: number,
    rate: number,
  ) => {
    destination: unknown
    startRendering(): Promise<{ getChannelData(channel: number): Float32Array }>
  }
  AudioBuffer: new (options: object) => { copyToChannel(samples: Float32Array, channel: number): void }
  AudioBufferSourceNode: new (context: unknown, options: object) => AudioNodes
  ChannelMergerNode: new (context: unknown, options: object) => AudioNodes
  ChannelSplitterNode: new (context: unknown, options: object) => AudioNodes
}

/** Samples to or from a page, as text: numbers would each be inspected on the way. */
const textOf = (samples: Float32Array) =>
  Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength).toString('base64')
const samplesOf = (text: string) => new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer)

describe.skipIf(!chromiumPath)('streams in a page (needs Chromium; CHROMIUM_PATH names one that is elsewhere)', () => {
  let host: StaticHost
  let browser: Browser
  const folder = temporaryFolder()
  const complaints: string[] = []

  beforeAll(async () => {
    await writeWav(join(folder, 'song.wav'), [sine(60 * rate, 440, rate, 0.4), noise(60 * rate)], rate, '16')
    host = await startHost()
    browser = await openBrowser(
      optimizingLittle,
      '--autoplay-policy=no-user-gesture-required',
      // A beep replaces the microphone, and a tab is chosen.
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
      '--auto-accept-this-tab-capture',
    )
  })
  afterAll(async () => {
    await browser?.close()
    await host?.close()
  })

  async function openPage(address: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage()
    page.on('pageerror', (error) => complaints.push(String(error)))
    await page.goto(address)
    return page
  }

  test('give the stems of the server', async () => {
    const planes = [sine(2 * rate, 440, rate, 0.4), noise(2 * rate)]
    const page = await openPage(host.base)
    await page.waitForFunction('globalThis.device')
    const found = await page.evaluate(
      async ({ texts, options }) => {
        const { device, Uint8Array } = globalThis as unknown as AudioPage
        const given = texts.map((text) => new Float32Array(Uint8Array.fromBase64(text).buffer))
        const blocks = (async function* () {
          for (let at = 0; at < given[0]!.length; at += 1024) yield given.map((plane) => plane.slice(at, at + 1024))
        })()
        const vocals: number[] = []
        for await (const { stems } of device.separateStream(blocks, options)) vocals.push(...stems.vocals![0]!)
        return new Uint8Array(Float32Array.from(vocals).buffer).toBase64()
      },
      {
        texts: planes.map(textOf),
        options: { sampleRate: rate, latencyMs: 700, whenLate: 'wait', assets },
      },
    )
    const blocks = (async function* () {
      yield planes
    })()
    const expected: Float32Array[] = []
    const options = { sampleRate: rate, latencyMs: 700, whenLate: 'wait', runtime: 'wasm' } as const
    for await (const { stems } of separateStream(blocks, options)) expected.push(stems.vocals[0]!)
    expect(maxDifference(samplesOf(found), joined(expected))).toBeLessThan(1e-6)
    expect(complaints).toEqual([])
  })

  test('of a node add up to its input, a fixed time later, even if they are late', async () => {
    const plane = noise(3 * rate)
    const page = await openPage(host.base)
    await page.waitForFunction('globalThis.device')
    // Rendered at full speed, so that nearly everything is late.
    const { sum, latencySeconds, lateSeconds } = await page.evaluate(
      async ({ text, sampleRate, given }) => {
        const web = globalThis as unknown as AudioPage
        const samples = new Float32Array(web.Uint8Array.fromBase64(text).buffer)
        const context = new web.OfflineAudioContext(1, samples.length, sampleRate)
        let lateSeconds = 0
        const onLate = (seconds: number) => (lateSeconds = seconds)
        const live = await web.device.createLiveNode(context, { latencyMs: 500, assets: given, onLate })
        const buffer = new web.AudioBuffer({ numberOfChannels: 1, length: samples.length, sampleRate })
        buffer.copyToChannel(samples, 0)
        const source = new web.AudioBufferSourceNode(context, { buffer })
        source.connect(live.node)
        for (const output of [0, 1]) {
          const left = new web.ChannelSplitterNode(context, {})
          live.node.connect(left, output)
          left.connect(context.destination, 0)
        }
        source.start()
        const rendered = await context.startRendering()
        live.close()
        await live.ended
        const { latencySeconds } = live
        // Messages of the audio thread arrive in order, but on a separate channel.
        const isTold = () => lateSeconds > samples.length / sampleRate - latencySeconds - 0.1
        for (let tries = 0; tries < 1000 && !isTold(); tries++) await new Promise((resolve) => setTimeout(resolve, 10))
        const sum = new web.Uint8Array(rendered.getChannelData(0).buffer).toBase64()
        return { sum, latencySeconds, lateSeconds }
      },
      { text: textOf(plane), sampleRate: rate, given: assets },
    )
    const delay = Math.round(latencySeconds * rate)
    const heard = samplesOf(sum)
    expect(latencySeconds).toBeCloseTo(0.56, 3)
    expect(lateSeconds).toBeGreaterThan(2.3)
    expect(lateSeconds).toBeLessThanOrEqual(3 - latencySeconds)
    expect(heard.subarray(0, delay).every((value) => value === 0)).toBe(true)
    expect(maxDifference(heard.subarray(delay), plane.subarray(0, plane.length - delay))).toBeLessThan(1e-6)
  })

  describe('on the page of the examples', () => {
    let server: ReturnType<typeof spawn>
    let address: string
    beforeAll(async () => {
      const program = fileURLToPath(new URL('../../examples/browser/server.mjs', import.meta.url))
      const child = spawn(process.execPath, [program], { env: { ...process.env, PORT: String(await freePort()) } })
      server = child
      address = `${String((await once(child.stdout, 'data'))[0]).trim()}/live`
    })
    afterAll(() => void server?.kill())

    const plays = (page: Page) =>
      page.locator('output', { hasText: /Separated, 1\.1 s later|too slow at times/ }).waitFor()

    test('play a file, a microphone and a tab', async () => {
      const page = await openPage(address)
      await page.setInputFiles('input[type=file]', join(folder, 'song.wav'))
      await plays(page)
      for (const name of ['Microphone', 'Sound of a tab']) {
        await page.getByRole('button', { name: 'Stop' }).click()
        await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'hidden' })
        await page.getByRole('button', { name }).click()
        await page.getByRole('button', { name: 'Stop' }).waitFor()
        await plays(page)
      }
      expect(complaints).toEqual([])
    })
  })
})
