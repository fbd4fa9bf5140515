// Records docs/demo.webp, the animation of the README, in a real browser: a song is dropped, two stems grow, the vocals
// are muted. Also writes docs/song.mp3 and docs/song-without-voice.mp3, the demo song before and after, as the
// console's own service separates it: node scripts/recording.mjs [folder]. Run "npm run build" first. Needs Chromium
// (CHROMIUM_PATH if it is elsewhere) and ffmpeg.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { writeDemoSong } from '../demo/demo-song.mjs'
import { toWav } from '../demo/pcm-wav.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const target = resolve(process.argv[2] ?? join(root, 'docs'))
const places = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome']
const executablePath = [process.env.CHROMIUM_PATH ?? '', ...places].find((path) => path !== '' && existsSync(path))
if (!executablePath) {
  console.error('There is no Chromium. Install one, or name it with CHROMIUM_PATH.')
  process.exit(1)
}

const songName = 'My song.wav'
/** The song is repeated so that the stems can be seen to grow. */
const repeats = 5
const patienceMs = 300_000
const width = 700

const folder = await mkdtemp(join(tmpdir(), 'stemwork-recording-'))
const service = await startService()
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
/** The picture files in order, with the seconds for which each is shown. */
const frames = []
let page
try {
  await mkdir(target, { recursive: true })
  await writeSong(join(folder, songName))
  page = await signedIn()
  await drop()
  await grow()
  await listen()
  await sounds()
  await encode()
} finally {
  await browser.close()
  service.child.kill('SIGINT')
  await once(service.child, 'exit')
  await rm(folder, { recursive: true, force: true })
}

async function startService() {
  const options = ['serve', '--port', '0', '--console', '--threads', '1', '--data', join(folder, 'data')]
  const child = spawn(process.execPath, [join(root, 'dist/cli/main.js'), ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log = []
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line))
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const link = log.map((entry) => /^Console: (\S+)$/.exec(entry)?.[1]).find(Boolean)
  if (!link) throw new Error(`The service did not start: ${line}\n${log.join('\n')}`)
  return { child, link }
}

async function writeSong(path) {
  const { mixture, sampleRate } = await writeDemoSong(join(folder, 'short.wav'))
  const long = mixture.map((plane) => {
    const samples = new Float32Array(plane.length * repeats)
    for (let i = 0; i < repeats; i++) samples.set(plane, i * plane.length)
    return samples
  })
  await writeFile(path, toWav(long, sampleRate))
}

async function signedIn() {
  const context = await browser.newContext({ viewport: { width: 900, height: 860 }, colorScheme: 'light' })
  const one = await context.newPage()
  one.setDefaultTimeout(patienceMs)
  await one.goto(service.link)
  await one.getByRole('button', { name: 'Sign in' }).click()
  await one.getByRole('button', { name: 'Choose songs' }).waitFor()
  return one
}

/** Adds a picture of the current page. */
async function show(seconds) {
  const path = join(folder, `${String(frames.length).padStart(3, '0')}.png`)
  await page.screenshot({ path })
  frames.push({ path, seconds })
}

/** Moves a hand with a file, which screenshots lack, to its target in a few pictures. */
async function drop() {
  await show(0.7)
  const data = (await readFile(join(folder, songName))).toString('base64')
  await page.evaluate(
    ([name, bytes]) => {
      const file = document.createElement('div')
      file.id = 'carried'
      file.textContent = `♫ ${name}`
      Object.assign(file.style, {
        position: 'fixed',
        padding: '6px 12px',
        borderRadius: '8px',
        background: '#222',
        color: '#fff',
        font: '15px sans-serif',
        zIndex: '99',
      })
      document.body.append(file)
      const binary = Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0))
      globalThis.carried = new DataTransfer()
      globalThis.carried.items.add(new File([binary], name, { type: 'audio/wav' }))
    },
    [songName, data],
  )
  const zone = await page.locator('.drop').boundingBox()
  for (let step = 0; step <= 5; step++) {
    await page.evaluate(
      ([x, y]) => {
        Object.assign(document.querySelector('#carried').style, { left: `${x}px`, top: `${y}px` })
        dispatchEvent(new DragEvent('dragover', { dataTransfer: globalThis.carried, cancelable: true }))
      },
      [850 + ((zone.x + zone.width / 2 - 850) * step) / 5, 560 + ((zone.y + zone.height / 2 - 560) * step) / 5],
    )
    await show(step === 5 ? 0.5 : 0.12)
  }
  await page.evaluate(() => {
    document.querySelector('#carried').remove()
    dispatchEvent(new DragEvent('drop', { dataTransfer: globalThis.carried, cancelable: true }))
  })
  await page.locator('.rows .status.started').waitFor()
  await show(0.8)
}

async function grow() {
  await page.locator('.rows').getByRole('link', { name: songName }).first().click()
  const bar = page.getByRole('progressbar', { name: 'Progress' })
  const done = page.getByText('Drag across a waveform to loop a part.').waitFor()
  let isDone = false
  done.then(
    () => (isDone = true),
    () => (isDone = true),
  )
  let shown = -1
  while (!isDone) {
    const [progress] = await bar.evaluateAll((bars) => bars.map(({ value }) => value))
    // A picture for each twelfth of the progress, however fast the machine is.
    if (progress !== undefined && Math.floor(progress * 12) > shown) {
      shown = Math.floor(progress * 12)
      await show(0.3)
    } else await page.waitForTimeout(20)
  }
  await done
  await page.waitForFunction(() => document.querySelectorAll('.drawing').length === 0)
  await show(1.2)
}

async function listen() {
  await page.getByRole('button', { name: 'Play', exact: true }).click()
  for (let i = 0; i < 5; i++) {
    await page.waitForTimeout(300)
    await show(0.3)
  }
  await page.getByRole('button', { name: 'Mute Vocals' }).click()
  for (let i = 0; i < 6; i++) {
    await page.waitForTimeout(300)
    await show(i === 5 ? 1.5 : 0.3)
  }
}

/** Ten seconds of the song, and the same of the service's result. */
async function sounds() {
  const download = page.waitForEvent('download')
  await page
    .getByRole('link', { name: /^Accompaniment/ })
    .first()
    .click()
  const band = join(folder, 'band.wav')
  await (await download).saveAs(band)
  for (const [from, name] of [
    [join(folder, songName), 'song.mp3'],
    [band, 'song-without-voice.mp3'],
  ])
    ffmpeg('-ss', '8', '-t', '10', '-i', from, '-b:a', '96k', '-map_metadata', '-1', join(target, name))
}

async function encode() {
  const list = frames.map(({ path, seconds }) => `file '${path}'\nduration ${seconds}`)
  await writeFile(join(folder, 'frames.txt'), [...list, `file '${frames.at(-1).path}'`, ''].join('\n'))
  const picture = ['-vf', `scale=${width}:-1:flags=lanczos`, '-c:v', 'libwebp_anim', '-quality', '55', '-loop', '0']
  const input = ['-f', 'concat', '-safe', '0', '-i', join(folder, 'frames.txt')]
  ffmpeg(...input, '-fps_mode', 'vfr', ...picture, '-compression_level', '6', join(target, 'demo.webp'))
}

function ffmpeg(...args) {
  execFileSync('ffmpeg', ['-y', '-v', 'error', ...args])
}
