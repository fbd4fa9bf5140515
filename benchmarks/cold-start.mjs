// The time from the shell prompt to the first progress bar and to the first separated audio of `stemwork separate`, and
// its breakdown. Every run is a separate process; the floor is Node.js alone, and Node.js with the network is the
// minimum of any separation. With `--runtime wasm`, on WebAssembly.
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openWavWriter } from '../build/core/media/encode/wav-writer.js'
import { machine } from './shared/benchmark.mjs'

const { values } = parseArgs({ options: { runtime: { type: 'string', default: 'native' } } })
const { runtime } = values
const rounds = 5
/** Aim for the first progress bar, in seconds. */
const aim = runtime === 'wasm' ? 1.5 : 1
const sampleRate = 44_100
const program = new URL('../dist/cli/main.js', import.meta.url).pathname
const command = new URL('../build/cli/commands/separate.js', import.meta.url).href
const childEntry = new URL('../dist/core/engine/runner/main.js', import.meta.url).pathname
const module = new URL('../build/core/workflows/separation/stems-module.js', import.meta.url).href
const sessions = new URL('../build/core/models/session/session.js', import.meta.url).href
const network = new URL('../models/embedded/model.onnx', import.meta.url).pathname
/** The progress bar is drawn only on terminals. */
const asTerminal = ['--import', 'data:text/javascript,process.stderr.isTTY=true']

const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
try {
  const song = join(folder, 'song.wav')
  const writer = await openWavWriter(song, { sampleRate, channels: 2, format: '16' })
  const noise = Float32Array.from({ length: sampleRate }, () => Math.random() - 0.5)
  for (let second = 0; second < 60; second++) await writer.write([noise, noise])
  await writer.close()

  const separate = [...asTerminal, program, 'separate', song, '-o', join(folder, 'stems'), '--runtime', runtime]
  const session =
    `import { openSession } from ${JSON.stringify(sessions)}; ` +
    `await openSession(${JSON.stringify(network)}, ${JSON.stringify({ runtime })})`
  const cases = [
    ['Node.js alone', () => timeTo(['-e', ''])],
    ['Node.js with the network in its runtime', () => timeTo(['--input-type=module', '-e', session])],
    ['Node.js with the command loaded', () => timeTo(['-e', `import(${JSON.stringify(command)})`])],
    ["Node.js with the child's entry loaded", () => timeTo([childEntry], { message: () => true })],
    ['Node.js with decoders and pipeline loaded', () => timeTo(['-e', `import(${JSON.stringify(module)})`])],
    [`separate: first bar (aim: under ${aim} s)`, () => timeTo(separate, { text: (text) => text.includes('%') })],
    ['separate: first audio separated', () => timeTo(separate, { text: (text) => /[1-9]\d?%/.test(text) })],
  ]
  console.log(`${machine()}; Node ${process.version}\n`)
  const times = cases.map(() => [])
  for (let round = 0; round < rounds; round++)
    for (const [index, [, run]] of cases.entries()) times[index].push(await run())
  console.log(`${'from start to'.padEnd(44)}      ms (median of ${rounds} rounds)   least`)
  for (const [index, [name]] of cases.entries()) {
    const sorted = times[index].sort((a, b) => a - b)
    console.log(`${name.padEnd(44)}${sorted[rounds >> 1].toFixed(0).padStart(8)}${sorted[0].toFixed(0).padStart(28)}`)
  }
  const [, floor, , , , firstBar] = times.map((each) => each[rounds >> 1])
  console.log(`\nfirst bar: ${(firstBar / floor).toFixed(2)} of the time of Node.js with the network`)
} finally {
  await rm(folder, { recursive: true })
}

/** Milliseconds until the process ends, writes the text to its stderr, or sends the message; then ends it. */
async function timeTo(args, { text, message } = {}) {
  const startedAt = performance.now()
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'ignore', text ? 'pipe' : 'ignore', ...(message ? ['ipc'] : [])],
  })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('message', resolve)
    child.stderr?.setEncoding('utf8').on('data', (piece) => text(piece) && resolve())
    child.once('exit', (code) => (text || message ? reject(new Error(`it exited with ${code}`)) : resolve()))
  })
  const time = performance.now() - startedAt
  // On SIGINT, the command removes its files and ends its child process.
  child.kill(text ? 'SIGINT' : 'SIGKILL')
  await gone
  return time
}
