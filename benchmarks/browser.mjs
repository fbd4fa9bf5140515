// `stemwork/browser` in Chromium, on the page of the examples: speed by wall time and CPU time, and peak memory of the
// page's process. Needs Linux, for the figures of processes. Options:
//   --minutes N  length of the input, noise (default 3; the memory aim is for 60 minutes)
//   --song FILE  separate this file instead
//   --live       the page that separates while it plays: its share of a core and how much of the audio was late
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, extname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { openAudio } from '../build/core/media/decode/open-audio.js'
import { writeNoise } from './architectures/files.mjs'
import { machine } from './shared/benchmark.mjs'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '3' }, song: { type: 'string' }, live: { type: 'boolean' } },
})
const aims = { speed: 2, bytes: 500e6 }
const places = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome']
const executablePath = [process.env.CHROMIUM_PATH, ...places].find((path) => path && existsSync(path))
if (!executablePath) throw new Error('This needs Chromium; set CHROMIUM_PATH if it is elsewhere.')
/** Clock ticks of /proc per second. */
const ticksInSecond = 100

const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
const server = spawn(process.execPath, [fileURLToPath(new URL('../examples/browser/server.mjs', import.meta.url))], {
  env: { ...process.env, PORT: String(await freePort()) },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--disable-gpu'],
})
try {
  const [address] = await once(server.stdout, 'data')
  const input = values.song ?? (await writeNoise(folder, 60 * Number(values.minutes)))
  const seconds = await secondsOf(input)
  const page = await browser.newPage()
  await page.goto(`${String(address).trim()}${values.live ? '/live' : ''}`)
  console.log(`${machine()}; Chromium ${browser.version()}, ${(seconds / 60).toFixed(1)} minutes of audio\n`)
  await (values.live ? measureLive(page, input, seconds) : measure(page, input, seconds))
} finally {
  await browser.close()
  server.kill()
  await rm(folder, { recursive: true })
}

async function measure(page, input, seconds) {
  const startedAt = performance.now()
  await page.setInputFiles('input', input)
  const link = page.getByRole('link', { name: `${basename(input, extname(input))} - vocals.wav` })
  await link.waitFor({ timeout: 0 })
  const elapsed = (performance.now() - startedAt) / 1000
  const { peakBytes, cpuSeconds } = await rendererOf(process.pid)
  console.log(
    `${(seconds / elapsed).toFixed(1)} x real time by the clock, ${(seconds / cpuSeconds).toFixed(1)} by processor ` +
      `time (aim: at least ${aims.speed}); at most ${(peakBytes / 1e6).toFixed(0)} MB in the page's process (aim: at ` +
      `most ${aims.bytes / 1e6})`,
  )
}

async function measureLive(page, input, seconds) {
  await page.setInputFiles('input[type=file]', input)
  const output = page.locator('output')
  await output.filter({ hasText: /./ }).waitFor()
  const before = await rendererOf(process.pid)
  await delay(1000 * seconds)
  const after = await rendererOf(process.pid)
  const share = (100 * (after.cpuSeconds - before.cpuSeconds)) / seconds
  console.log(
    `${share.toFixed(0)} % of a core; at most ${(after.peakBytes / 1e6).toFixed(0)} MB in the page's process. ` +
      `The page says: ${await output.textContent()}`,
  )
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  return port
}

async function secondsOf(path) {
  const { blocks, sampleRate } = await openAudio(path)
  let samples = 0
  for await (const { channels } of blocks) samples += channels[0].length
  return samples / sampleRate
}

/** The largest renderer process among the descendants of the given process. */
async function rendererOf(ancestor) {
  const found = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')
    if (!command.includes('--type=renderer') || !(await isBelow(pid, ancestor))) continue
    const status = await readFile(`/proc/${pid}/status`, 'latin1')
    const { cpuSeconds } = await statOf(pid)
    found.push({ peakBytes: 1024 * Number(/VmHWM:\s*(\d+)/.exec(status)?.[1]), cpuSeconds })
  }
  return found.sort((one, other) => other.peakBytes - one.peakBytes)[0]
}

async function isBelow(pid, ancestor) {
  for (let at = Number(pid); at > 1; at = (await statOf(at)).parent) if (at === ancestor) return true
  return false
}

/** Fields of proc(5), counted after the name, which may contain spaces. */
async function statOf(pid) {
  const text = await readFile(`/proc/${pid}/stat`, 'latin1')
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  return { parent: fields[1], cpuSeconds: (fields[11] + fields[12]) / ticksInSecond }
}
