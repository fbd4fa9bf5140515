// Makes the pictures of the console and of /docs for README and documentation: node scripts/screenshots.mjs [folder]
// (default docs/images). Run "npm run build" first. Needs Chromium; CHROMIUM_PATH names one that is elsewhere.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { writeDemoSong } from '../demo/demo-song.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const target = resolve(process.argv[2] ?? join(root, 'docs/images'))
const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const executablePath = [process.env.CHROMIUM_PATH ?? '', ...places].find((path) => path !== '' && existsSync(path))
if (!executablePath) {
  console.error('There is no Chromium. Install one, or name it with CHROMIUM_PATH.')
  process.exit(1)
}

const desktop = { viewport: { width: 1280, height: 860 }, deviceScaleFactor: 2 }
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true }
const songs = ['Harbour Lights.wav', 'Paper Boats (live at the old cinema, second night).wav', 'Low Tide.wav']
const patienceMs = 300_000

const folder = await mkdtemp(join(tmpdir(), 'stemwork-pictures-'))
const service = await startService()
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  await mkdir(target, { recursive: true })
  await fillLibrary()
  for (const colorScheme of ['light', 'dark']) {
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
  const options = ['serve', '--port', '0', '--console', '--threads', '1', '--data', join(folder, 'data')]
  const child = spawn(process.execPath, [main, ...options], { stdio: ['ignore', 'pipe', 'pipe'] })
  const log = []
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line))
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const link = log.map((entry) => /^Console: (\S+)$/.exec(entry)?.[1]).find(Boolean)
  if (!link) throw new Error(`The service did not start: ${line}\n${log.join('\n')}`)
  return { child, link }
}

async function fillLibrary() {
  const page = await signedIn(desktop)
  await writeDemoSong(join(folder, songs[0]))
  for (const name of songs.slice(1)) await copyFile(join(folder, songs[0]), join(folder, name))
  await writeFile(join(folder, 'cover.jpg.mp3'), 'This is not a song.\n')
  await page.locator('input[type=file]').setInputFiles(['cover.jpg.mp3', ...songs].map((name) => join(folder, name)))
  await page
    .locator('.status.succeeded')
    .nth(songs.length - 1)
    .waitFor({ timeout: patienceMs })
  await page.context().close()
}

async function signedIn(options) {
  const page = await (await browser.newContext({ ...options, reducedMotion: 'reduce' })).newPage()
  page.setDefaultTimeout(patienceMs)
  await page.goto(service.link)
  await page.getByRole('button', { name: 'Choose songs' }).waitFor()
  return page
}

async function pictures(colours, device, options) {
  const save = (page, name, fullPage = false) =>
    page.screenshot({ path: join(target, `${name}-${device}-${colours}.png`), fullPage })
  const page = await signedIn(options)
  await page.locator('.rows li').nth(songs.length).waitFor()
  await save(page, 'library')
  await page.locator('.rows').getByRole('link', { name: songs[0], exact: true }).click()
  await page.getByRole('region', { name: 'Listen' }).waitFor()
  await page.waitForFunction(() => document.querySelectorAll('.drawing').length === 0)
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  await page.waitForTimeout(300)
  await save(page, 'player', true)
  await page.getByRole('link', { name: 'Details' }).click()
  await page.getByRole('heading', { name: 'Timeline' }).waitFor()
  await save(page, 'details', true)
  await page.goto(new URL('docs', service.link).href)
  await page.waitForTimeout(300)
  await save(page, 'docs')
  const stranger = await (await browser.newContext(options)).newPage()
  await stranger.goto(service.link.replace(/#.*/, ''))
  await stranger.getByLabel('API key').waitFor()
  await save(stranger, 'sign-in')
  await stranger.context().close()
  await page.context().close()
}
