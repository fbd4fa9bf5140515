// How soon a song is heard after its file is dropped on `/console`, if it is opened and played as soon as the page
// lets one: wall time in Chromium, with the service on the same machine; and how soon after the drop the file is
// uploaded and its job created. Needs ffmpeg. Options:
//   --minutes N  lengths of the files of noise, separated by commas (default 1,10,59; more than 60 is refused)
//   --kinds K    kinds of files below, or prefixes of their names, separated by commas (default all)
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { writeNoise } from './architectures/files.mjs'
import { machine } from './shared/benchmark.mjs'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '1,10,59' }, kinds: { type: 'string', default: '' } },
})
const lame = ['-c:a', 'libmp3lame']
const bare = ['-write_xing', '0', '-id3v2_version', '0']
const aac = ['-c:a', 'aac', '-b:a', '160k']
/** Encoder options for one minute, and those for writing its repetition. */
const kinds = {
  wav: ['wav', ['-c:a', 'copy']],
  flac: ['flac', ['-c:a', 'flac'], []],
  'mp3, constant': ['mp3', [...lame, '-b:a', '192k']],
  'mp3, constant, no header': ['mp3', [...lame, '-b:a', '192k'], bare],
  'mp3, variable': ['mp3', [...lame, '-q:a', '0']],
  'mp3, variable, no header': ['mp3', [...lame, '-q:a', '0'], bare],
  'mp3, with a picture': ['mp3', [...lame, '-b:a', '192k'], 'picture'],
  'm4a, index last': ['m4a', aac],
  'm4a, index first': ['m4a', aac, ['-movflags', '+faststart']],
  'm4a, in fragments': ['m4a', aac, ['-movflags', '+frag_keyframe+empty_moov', '-frag_duration', '5000000']],
  'ogg, vorbis': ['ogg', ['-c:a', 'libvorbis', '-q:a', '6']],
  'ogg, opus': ['opus', ['-c:a', 'libopus', '-b:a', '128k']],
}
const aimSeconds = 3
const key = 'a-key-of-the-benchmark'
const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const places = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome']
const executablePath = [process.env.CHROMIUM_PATH, ...places].find((path) => path && existsSync(path))
if (!executablePath) throw new Error('This needs Chromium; set CHROMIUM_PATH if it is elsewhere.')

const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
const options = ['--port', '0', '--console', '--data', join(folder, 'data'), '--api-keys', key]
const service = spawn(process.execPath, [main, 'serve', ...options], { stdio: ['ignore', 'pipe', 'inherit'] })
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  const [line] = await once(service.stdout, 'data')
  const base = / on (\S+)/.exec(String(line))[1]
  console.log(`${machine()}; Chromium ${browser.version()}\n`)
  for (const minutes of values.minutes.split(',').map(Number)) {
    for (const kind of Object.keys(kinds))
      if (values.kinds.split(',').some((start) => kind.startsWith(start))) await measure(base, kind, minutes)
  }
} finally {
  await browser.close()
  service.kill('SIGINT')
  await once(service, 'exit')
  await rm(folder, { recursive: true })
}

function ffmpeg(...options) {
  execFileSync('ffmpeg', ['-loglevel', 'error', '-y', ...options])
}

/** Writes a file of noise: one minute, encoded and repeated, because encoding an hour takes minutes. */
async function write(kind, minutes) {
  const [ending, encoder, writing = []] = kinds[kind]
  const minute = join(folder, `minute.${ending}`)
  const song = join(folder, `${kind.replaceAll(', ', '-').replaceAll(' ', '-')}-${minutes}.${ending}`)
  const noise = await writeNoise(folder, 60)
  if (ending !== 'wav') ffmpeg('-i', noise, ...encoder, minute)
  const picture = join(folder, 'picture.png')
  if (writing === 'picture')
    ffmpeg('-f', 'lavfi', '-i', 'nullsrc=s=1000x1000,geq=random(1)*255:128:128', '-frames:v', '1', picture)
  const repeated = ['-stream_loop', String(minutes - 1), '-i', ending === 'wav' ? noise : minute]
  const form = writing === 'picture' ? ['-i', picture, '-map', '0', '-map', '1'] : writing
  // Encoders add a little to each minute, and the service accepts an hour at most.
  ffmpeg(...repeated, ...form, '-t', String(60 * minutes - 1), ...(ending === 'flac' ? encoder : ['-c', 'copy']), song)
  return song
}

async function measure(base, kind, minutes) {
  const song = await write(kind, minutes)
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
  await page.waitForURL(/#[/]job[/].{30}/)
  mark('its job is created')
  console.log(
    `${minutes} min of ${kind} (${(statSync(song).size / 1e6).toFixed(0)} MB): ` +
      `first sound after ${seconds.toFixed(1)} s (aim on two quiet cores: at most ${aimSeconds}); ` +
      `${marks.join(', ')}; load ${loadavg()[0].toFixed(1)}`,
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
  const [id] = page.url().match(/[^/]{30,}$/) ?? []
  const headers = { authorization: `Bearer ${key}` }
  await context.request.delete(`${base}/job/${id}`, { headers })
  await context.close()
  await rm(song)
}
