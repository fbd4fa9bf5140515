// Shows the whole flow over HTTP: `npm run demo` with the demo song, `npm run demo -- song.mp3` with your own file.
import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, extname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { writeDemoSong } from '../demo/demo-song.mjs'
import { fromWav, wavLevels } from '../demo/pcm-wav.mjs'
import { scoreTable } from '../demo/score.mjs'
import { ProgressLine } from '../build/cli/terminal/progress-line.js'
import { client } from './client.mjs'
import { startService } from './service.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const pollMs = 300
/** Sample rate of every result of the service, in hertz. */
const sampleRate = 44_100
const hints = {
  decode_failed: 'The file seems to be damaged; try another copy of it.',
  no_audio: 'The file holds no sound; try another one.',
  too_long: 'Cut the file into shorter pieces.',
  too_large: 'Compress the file, for example to FLAC or MP3.',
  worker_lost: 'Try again; the machine may be short of memory.',
}

class JobFailed extends Error {}

const [given] = process.argv.slice(2)
const scratch = await mkdtemp(join(tmpdir(), 'stemwork-demo-'))
let service
let stopping = false
process.on('SIGINT', () => void end(130))
process.on('SIGTERM', () => void end(143))

try {
  await demo()
  await end(0)
} catch (error) {
  if (!stopping) {
    console.error(`\nThe demo failed. ${error instanceof Error ? error.message : String(error)}`)
    if (service && !(error instanceof JobFailed))
      console.error(`\nThe service's last lines:\n${service.log.join('\n')}`)
    await end(1)
  }
}

async function end(status) {
  if (stopping) return
  stopping = true
  await service?.stop()
  await rm(scratch, { recursive: true, force: true })
  process.exit(status)
}

async function demo() {
  const path = given === undefined ? join(scratch, 'demo-song.wav') : resolve(given)
  const song = given === undefined ? await writeDemoSong(path) : undefined
  if (!(await stat(path).catch(() => undefined))?.isFile())
    throw new Error(`There is no file ${path}. Usage: npm run demo -- song.mp3`)
  const name = basename(path, extname(path))
  const folder = join(root, 'demo-output', name)

  const startedAt = performance.now()
  service = await startService()
  const api = client(service)
  step('service', `${service.baseUrl} is up, for application "${(await api.application()).name}"`)

  const downloadUrl = await api.upload(path)
  step('upload', `${basename(path)}, ${megabytes((await stat(path)).size)}`)

  const submittedAt = performance.now()
  const { id } = await api.createJob({
    name,
    workflow: 'service/stems-vocals-accompaniment',
    params: { inputUrl: downloadUrl },
  })
  step('job', `${id} created`)
  const job = await waitFor(api, id)
  const jobSeconds = (performance.now() - submittedAt) / 1000
  if (job.status === 'FAILED') {
    const { code, reason, message } = job.error
    throw new JobFailed(`The job ended ${code}${reason ? ` (${reason})` : ''}: ${message} ${hints[reason] ?? ''}`)
  }

  await mkdir(folder, { recursive: true })
  const files = {}
  for (const [output, url] of Object.entries(job.result)) {
    files[output] = join(folder, `${output}.wav`)
    await api.download(url, files[output])
  }
  step('download', `${Object.keys(files).join(' and ')}`)
  await api.deleteJob(id)
  step('delete', 'the job and its files are gone from the service')

  console.log('\nYour stems:')
  let seconds = 0
  for (const file of Object.values(files)) {
    const levels = await wavLevels(file, sampleRate)
    seconds = levels.seconds
    console.log(
      `  ${relative(process.cwd(), file)}  ${seconds.toFixed(2)} s, level ${decibels(levels.rms)}, peak ` +
        `${decibels(levels.peak)}`,
    )
  }
  console.log(
    `\n${seconds.toFixed(1)} s of audio in ${jobSeconds.toFixed(1)} s: ${(seconds / jobSeconds).toFixed(1)} x real ` +
      `time, from the job's creation to its end`,
  )
  console.log(
    `(${((performance.now() - startedAt) / 1000).toFixed(1)} s with the start of the service, upload and download).`,
  )
  if (song) await printScores(song, files)
  else
    console.log(
      '\nHow good it is only a known answer can tell: "npm run demo" without a file prints scores for a song whose ' +
        'true stems are known.',
    )
}

async function waitFor(api, id) {
  const progress = new ProgressLine(process.stdout)
  for (;;) {
    const job = await api.job(id)
    if (job.status === 'SUCCEEDED' || job.status === 'FAILED') {
      progress.clear()
      if (job.status === 'SUCCEEDED') step('separate', 'done')
      return job
    }
    progress.show('  separate ', job.progress)
    await delay(pollMs)
  }
}

async function printScores(song, files) {
  const stems = {
    vocals: fromWav(await readFile(files.vocals)),
    accompaniments: fromWav(await readFile(files.accompaniments)),
  }
  const rows = await scoreTable(song, stems)
  const width = Math.max(...rows.map(({ method }) => method.length))
  const number = (value) => value.toFixed(2).padStart(7)
  console.log(
    '\nHow close to the true stems, in dB, higher is better (uSDR: whole song; SI-SDR: the same, blind to level):\n',
  )
  console.log(`  ${''.padEnd(width)}      vocals          accompaniments`)
  console.log(`  ${''.padEnd(width)}    uSDR SI-SDR       uSDR SI-SDR`)
  for (const { method, vocals, accompaniments } of rows) {
    console.log(
      `  ${method.padEnd(width)} ${number(vocals.uSdr)}${number(vocals.siSdr)}    ` +
        `${number(accompaniments.uSdr)}${number(accompaniments.siSdr)}`,
    )
  }
  console.log(
    '\nThis song is synthetic, its singer too. The scores on recorded songs are in models/embedded/README.md.',
  )
}

function step(name, text) {
  console.log(`  ${name.padEnd(9)} ${text}`)
}

function decibels(value) {
  return value > 0 ? `${(20 * Math.log10(value)).toFixed(1)} dBFS` : 'silent'
}

function megabytes(bytes) {
  return bytes < 100_000 ? `${bytes} bytes` : `${(bytes / 1e6).toFixed(1)} MB`
}
