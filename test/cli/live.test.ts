import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { writeModel } from '../separation/models.js'
import { maskNetwork } from '../separation/onnx-graph.js'
import { maxDifference, noise } from '../separation/tracks.js'
import { hasProgram } from '../media/programs.js'
import { command, wav } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const rate = 44_100

const folder = temporaryFolder()
/** A model whose vocals are the mixture. */
let identity: string
beforeAll(async () => {
  identity = await writeModel(join(folder, 'identity'), maskNetwork())
})

/** A process with piped standard streams. */
function live(args: readonly string[]) {
  const child = spawn(process.execPath, [main, 'live', '--model', identity, ...args])
  const [stdout, stderr] = [buffer(child.stdout), text(child.stderr)]
  // A test may close this stream.
  stdout.catch(() => undefined)
  return { child, stdout, stderr, status: once(child, 'close').then(([status]) => status as number | null) }
}

test('a WAV file comes out as a WAV file of the same length, with the requested stem', async () => {
  const planes = [noise(2 * rate), noise(2 * rate, 2)]
  const { child, stdout, stderr, status } = live(['--stem', 'vocals', '--wait'])
  child.stdin.end(wav.toWav(planes, rate))
  const found = wav.fromWav(await stdout)
  expect([await status, await stderr]).toEqual([0, ''])
  for (const [channel, plane] of planes.entries())
    // Rounded to 16 bits twice.
    expect(maxDifference(found[channel]!.subarray(0, rate), plane.subarray(0, rate))).toBeLessThan(1e-3)
  expect(found.map(({ length }) => length)).toEqual([2 * rate, 2 * rate])
})

test('raw samples come out raw, and a signal of vocals alone leaves no accompaniments', async () => {
  const samples = noise(3 * 48_000)
  const { child, stdout, status } = live([
    '--raw',
    'f32',
    '--rate',
    '48000',
    '--channels',
    '1',
    '--latency',
    '300',
    '--wait',
  ])
  child.stdin.end(new Uint8Array(samples.buffer))
  const bytes = await stdout
  expect(await status).toBe(0)
  const found = new Float32Array(new Uint8Array(bytes).buffer)
  expect(found).toHaveLength(samples.length)
  // The filters of the two rate conversions remove everything above 20 kHz.
  const power = (values: Float32Array) => values.reduce((sum, value) => sum + value * value, 0)
  expect(power(found.subarray(4800, -4800))).toBeLessThan(0.25 * power(samples))
})

test.skipIf(!hasProgram('ffmpeg'))('ffmpeg reads and writes the other ends (skipped without it)', async () => {
  const source = 'ffmpeg -v error -f lavfi -i sine=440:sample_rate=22050:duration=3 -f wav -'
  const sink = 'ffmpeg -v error -i - -f s16le -'
  const live = `"${process.execPath}" "${main}" live --model "${identity}" --stem vocals --wait`
  const { stdout } = spawn('sh', ['-c', `${source} | ${live} | ${sink}`])
  const bytes = await buffer(stdout)
  expect(bytes.length).toBe(3 * 22_050 * 2)
})

test('a machine that stalls passes the input through, and a message says so', async () => {
  const { child, stdout, stderr, status } = live(['--raw', 's16', '--stem', 'accompaniments'])
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  let sentBytes = 0
  const second = new Uint8Array(rate * 4)
  const feed = (async () => {
    while (!said.includes('too slow')) {
      sentBytes += second.length
      if (!child.stdin.write(second)) await once(child.stdin, 'drain')
    }
    child.stdin.end()
  })()
  // The process is most likely waiting for an estimate.
  while (!said.includes('too slow')) {
    child.kill('SIGSTOP')
    await delay(1000)
    child.kill('SIGCONT')
    await delay(300)
  }
  await feed
  expect((await stdout).length).toBe(sentBytes)
  expect(await status).toBe(0)
  expect(await stderr).toMatch(/the input passes unchanged[\s\S]*\d blocks? .* of /)
})

test('a reader that closes the pipe ends it without an error', async () => {
  const { child, stderr, status } = live(['--raw', 's16'])
  child.stdin.on('error', () => undefined)
  const silence = new Uint8Array(64 * 1024)
  const feed = setInterval(() => child.stdin.write(silence), 1)
  await once(child.stdout, 'data')
  child.stdout.destroy()
  expect(await status).toBe(0)
  clearInterval(feed)
  expect(await stderr).not.toMatch(/Error/)
})

test('Ctrl-C stops it while it waits for sound', async () => {
  const { child, status } = live(['--raw', 's16'])
  child.stdin.write(new Uint8Array(400_000))
  await once(child.stdout, 'data')
  child.kill('SIGINT')
  expect(await status).toBe(130)
})

test.each([
  [['--stem', 'drums'], /--stem must be vocals or accompaniments, not "drums"/],
  [['--latency', '100'], /--latency must be a whole number from 250 to 4000/],
  [['--rate', '48000'], /--rate and --channels are for raw samples/],
  [['--raw', 'mp3'], /--raw must be one of s16, s24, f32/],
])('refuses %j', async (args, message) => {
  const { status, stderr } = await command(['live', ...args])
  expect(status).toBe(2)
  expect(stderr).toMatch(message)
})

test('refuses input that is not WAV, and says what to pipe', async () => {
  const { child, stderr, status } = live([])
  child.stdin.end('ID3 something else')
  expect(await status).toBe(1)
  expect(await stderr).toMatch(/not an uncompressed WAV file. Pipe one, for example from ffmpeg/)
})
