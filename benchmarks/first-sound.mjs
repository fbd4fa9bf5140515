// How soon a person hears a song whose file was just dropped on `/console`, who opens the song and presses Play as soon
// as the page offers both: by the clock, in Chromium, with the service on the same machine. Options:
//   --minutes N  lengths of WAV files of noise, with commas (default 1,10,60)
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { writeNoise } from './architectures/files.mjs'

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '1,10,60' } } })
const aimSeconds = 3
const key = 'a-key-of-the-benchmark'
const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const places = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome']
const executablePath = [process.env.CHROMIUM_PATH, ...places].find((path) => path && existsSync(path))
if (!executablePath) throw new Error('This needs Chromium; CHROMIUM_PATH names one that is elsewhere.')

const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
const options = ['--port', '0', '--console', '--data', join(folder, 'data'), '--api-keys', key]
const service = spawn(process.execPath, [main, 'serve', ...options], { stdio: ['ignore', 'pipe', 'inherit'] })
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  const [line] = await once(service.stdout, 'data')
  const base = / on (\S+)/.exec(String(line))[1]
  console.log(
    `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)} at the start; ` +
      `Chromium ${browser.version()}\n`,
  )
  for (const minutes of values.minutes.split(',').map(Number)) await measure(base, minutes)
} finally {
  await browser.close()
  service.kill('SIGINT')
  await once(service, 'exit')
  await rm(folder, { recursive: true })
}

async function measure(base, minutes) {
  const song = await writeNoise(folder, 60 * minutes)
  const context = await browser.newContext()
  await context.request.post(`${base}/session`, { data: { key }, headers: { origin: new URL(base).origin } })
  const page = await context.newPage()
  page.setDefaultTimeout(300_000)
  await page.goto(`${base}/console`)
  await page.getByText('Connected', { exact: true }).waitFor()
  const startedAt = performance.now()
  const marks = []
  const mark = (text) => marks.push(`${((performance.now() - startedAt) / 1000).toFixed(2)} s ${text}`)
  await page.locator('input[type=file]').setInputFiles(song)
  mark('dropped')
  await page.getByRole('link', { name: basename(song), exact: true }).click()
  mark('opened')
  await page.getByRole('button', { name: 'Play', exact: true }).click()
  mark('Play')
  await page.waitForFunction(() => Number(document.querySelector('[aria-label=Position]')?.value) > 0)
  const seconds = (performance.now() - startedAt) / 1000
  console.log(
    `${minutes} min: first sound after ${seconds.toFixed(1)} s (aim on two quiet cores: at most ${aimSeconds}); ` +
      marks.join(', '),
  )
  if (process.env.REQUESTS) {
    const requests = await page.evaluate(() =>
      performance
        .getEntriesByType('resource')
        .filter(({ initiatorType }) => initiatorType !== 'link')
        .map(({ name, startTime, responseEnd }) =>
          [new URL(name).pathname, Math.round(startTime), Math.round(responseEnd)].join(' '),
        ),
    )
    console.log(requests.join('\n'))
  }
  await context.close()
}
