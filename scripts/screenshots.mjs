// Takes the screenshots of docs/console.md and docs/operating.md: node scripts/screenshots.mjs [folder]. With --all, of
// all pages, light and dark, desktop and phone. --song=FILE is shown instead of the demo song. Run "npm run build"
// first. Needs Chromium; CHROMIUM_PATH if it is elsewhere.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { writeDemoSong } from '../demo/demo-song.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({
  options: { song: { type: 'string' }, all: { type: 'boolean' } },
  allowPositionals: true,
})
const target = resolve(positionals[0] ?? join(root, 'docs'))
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]
const executablePath = [process.env.CHROMIUM_PATH ?? '', ...places].find((path) => path !== '' && existsSync(path))
if (!executablePath) {
  console.error('There is no Chromium. Install one, or name it with CHROMIUM_PATH.')
  process.exit(1)
}

const desktop = { viewport: { width: 1280, height: 860 }, deviceScaleFactor: 2 }
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true }
const songs = ['Harbour Lights.wav', 'Paper Boats (live at the old cinema, second night).wav', 'Low Tide.wav']
const patienceMs = 300_000
const operatorKey = 'the-key-of-the-operator'
/** The sign-in link works once, so all pages share its cookies. */
let cookies = []

const folder = await mkdtemp(join(tmpdir(), 'stemwork-pictures-'))
const service = await startService()
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  await fillLibrary()
  await mkdir(target, { recursive: true })
  if (!values.all) {
    await consolePicture()
    await operatorPicture()
  }
  for (const colorScheme of values.all ? ['light', 'dark'] : []) {
    await pictures(colorScheme, 'desktop', { ...desktop, colorScheme })
    await pictures(colorScheme, 'phone', { ...phone, colorScheme })
  }
} finally {
  await browser.close()
  service.child.kill('SIGINT')
  await once(service.child, 'exit')
  await rm(folder, { recursive: true, force: true })
}

async function startService() {
  const main = join(root, 'dist/cli/main.js')
  const options = ['serve', '--port', '0', '--console', '--operator-key', operatorKey, '--threads', '1']
  const child = spawn(process.execPath, [main, ...options, '--data', join(folder, 'data')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log = []
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line))
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const link = log.map((entry) => /^Console: (\S+)$/.exec(entry)?.[1]).find(Boolean)
  if (!link) throw new Error(`The service did not start: ${line}\n${log.join('\n')}`)
  return { child, link }
}

async function fillLibrary() {
  const page = await signedIn(desktop)
  if (values.song) await copyFile(values.song, join(folder, songs[0]))
  else await writeDemoSong(join(folder, songs[0]))
  for (const name of songs.slice(1)) await copyFile(join(folder, songs[0]), join(folder, name))
  // A file that neither the page nor the service can decode.
  await writeFile(join(folder, 'damaged.mp3'), Buffer.alloc(3000, 1))
  await page.locator('input[type=file]').setInputFiles(['damaged.mp3', ...songs].map((name) => join(folder, name)))
  await page
    .locator('.status.succeeded')
    .nth(songs.length - 1)
    .waitFor({ timeout: patienceMs })
  await page.context().close()
}

async function signedIn(options) {
  const context = await browser.newContext({ ...options, reducedMotion: 'reduce' })
  await context.addCookies(cookies)
  const page = await context.newPage()
  page.setDefaultTimeout(patienceMs)
  await page.goto(cookies.length > 0 ? service.link.replace(/#.*/, '') : service.link)
  if (cookies.length === 0) await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Choose songs' }).waitFor()
  cookies = await context.cookies()
  return page
}

async function consolePicture() {
  const page = await signedIn({ viewport: { width: 1120, height: 700 } })
  await openPlayer(page)
  await page.screenshot({ path: join(target, 'console.png'), fullPage: true })
  await page.context().close()
}

/** The picture is taken while one song is separated and another waits. */
async function operatorPicture() {
  const page = await signedIn({ viewport: { width: 1120, height: 1000 } })
  const files = ['First Rehearsal.wav', 'Second Rehearsal.wav'].map((name) => join(folder, name))
  for (const file of files) await copyFile(join(folder, songs[0]), file)
  await page.locator('input[type=file]').setInputFiles(files)
  for (const state of ['started', 'queued']) await page.locator(`.status.${state}`).first().waitFor()
  await page.goto(new URL('operator', service.link).href)
  await page.getByLabel('Operator key').fill(operatorKey)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('heading', { name: 'Used this month' }).waitFor()
  await page.screenshot({ path: join(target, 'operator.png') })
  await page.context().close()
}

async function openPlayer(page) {
  // Only rows near the view are in the document.
  await page.getByRole('list', { name: 'Songs' }).evaluate((list) => list.scrollIntoView())
  await page.locator('.rows').getByRole('link', { name: songs[0], exact: true }).click()
  await page.getByRole('region', { name: 'Listen' }).waitFor()
  await page.waitForFunction(() => document.querySelectorAll('.drawing').length === 0)
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  await page.waitForTimeout(300)
}

async function pictures(colours, device, options) {
  const save = (page, name, fullPage = false) =>
    page.screenshot({ path: join(target, `${name}-${device}-${colours}.png`), fullPage })
  const page = await signedIn(options)
  await page.locator('.rows li').nth(songs.length).waitFor()
  // The small waveforms are drawn when their rows come into view.
  await page.locator('.rows li').last().scrollIntoViewIfNeeded()
  await page.waitForTimeout(1000)
  await save(page, 'library', true)
  for (const [workflow, set] of [
    ['Loudness', { 'Normalize to (LUFS)': '-14', 'Peak ceiling (dBTP)': '3' }],
    ['Transcode', { 'Sample rate (Hz)': '48000', 'Start (s)': '12.5' }],
  ]) {
    await page.getByLabel('Workflow').first().selectOption(workflow)
    const options = page.locator('.choices')
    if (!(await options.evaluate((one) => one.open))) await options.locator('summary').click()
    for (const [label, text] of Object.entries(set)) {
      await page.getByLabel(label).fill(text)
      await page.getByLabel(label).blur()
    }
    await save(page, `options-${workflow.toLowerCase()}`, true)
  }
  await openPlayer(page)
  await save(page, 'player', true)
  await page.getByRole('link', { name: 'Details' }).click()
  await page.getByRole('heading', { name: 'Timeline' }).waitFor()
  await save(page, 'details', true)
  await page.goto(new URL('docs', service.link).href)
  await page.waitForTimeout(300)
  await save(page, 'docs')
  await page.goto(new URL('nothing', service.link).href)
  await save(page, 'not-found')
  const stranger = await (await browser.newContext(options)).newPage()
  await stranger.goto(service.link.replace(/#.*/, ''))
  await stranger.getByLabel('API key').waitFor()
  await save(stranger, 'sign-in')
  await stranger.context().close()
  await page.context().close()
}
