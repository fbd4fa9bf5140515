// `stemwork separate <folder>` with 100 short songs, killed and interrupted at random moments until all are done: no
// song may be separated twice, and no result may be incomplete. Then the time per song in one run, and the cost of a
// run in which all songs are finished.
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEncoder } from '../build/core/media/encode/encoder.js'
import { machine } from './shared/benchmark.mjs'

const songs = 100
const sampleRate = 44_100
const program = new URL('../dist/cli/main.js', import.meta.url).pathname
const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
const input = join(folder, 'songs')

try {
  await mkdir(input)
  const noise = Float32Array.from({ length: sampleRate / 2 }, () => Math.random() - 0.5)
  for (let song = 0; song < songs; song++) {
    const encoder = await openEncoder(join(input, `song ${String(song).padStart(3, '0')}.flac`), {
      sampleRate,
      channels: 2,
      format: 'flac',
      tags: { artist: 'Noise', title: `Song ${song % 50}` },
    })
    await encoder.write([noise, noise])
    await encoder.close()
  }
  console.log(`${machine()}; Node ${process.version}`)
  const broken = join(folder, 'broken')
  const signals = []
  for (let status = null; status !== 0;) {
    const signal = signals.length % 2 === 0 ? 'SIGKILL' : 'SIGINT'
    // Ends the process some time after this many songs have finished, while the next one runs.
    status = await separate(broken, { signal, after: 8 + Math.floor(Math.random() * 12), laterMs: Math.random() * 300 })
    if (status !== 0) signals.push(signal)
  }
  const finished = (await readFile(join(broken, '.stemwork/journal.jsonl'), 'utf8'))
    .split('\n')
    .filter((line) => line.includes('"finished"'))
    .map((line) => JSON.parse(line))
  const results = (await readdir(join(broken, 'Noise'))).length
  const distinct = new Set(finished.map((line) => line.input)).size
  const left = (await readdir(join(broken, '.stemwork'))).filter((name) => name.startsWith('work')).length
  console.log(
    `${signals.length} interruptions: ${finished.length} songs finished, ${distinct} distinct, ${results} result ` +
      `files, ${left} leftover folders.`,
  )
  if (finished.length !== songs || distinct !== songs || results !== 2 * songs || left !== 0) process.exitCode = 1

  for (const jobs of [1, 2]) {
    const startedAt = performance.now()
    await separate(join(folder, `whole-${jobs}`), {}, jobs)
    console.log(`--jobs ${jobs}: ${((performance.now() - startedAt) / songs).toFixed(0)} ms a song of 0.5 s`)
  }
  const startedAt = performance.now()
  await separate(join(folder, 'whole-1'), {})
  console.log(`again, all finished: ${(performance.now() - startedAt).toFixed(0)} ms`)
} finally {
  await rm(folder, { recursive: true })
}

/** Returns the exit status; null after SIGKILL. */
function separate(output, { signal, after, laterMs }, jobs = 2) {
  const args = [program, 'separate', input, '-o', output, '--jobs', jobs, '--name', '{artist}/{title} - {stem}']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let done = 0
  child.stderr.setEncoding('utf8').on('data', (text) => {
    done += text.split(': done in').length - 1
    if (done >= after) setTimeout(() => child.kill(signal), laterMs)
  })
  return new Promise((resolve) => child.once('close', resolve))
}
