// Damages audio files at random and decodes them one after the other in a child process of the runner, as a service
// does. Fails when a file ends the child process, takes too long, ends in anything but audio or BAD_INPUT, or changes
// the child's result for an undamaged file.
//
// STEMWORK_FUZZ_FILES (2,000) or STEMWORK_FUZZ_SECONDS bounds the run. STEMWORK_FUZZ_SEED repeats one; the default is
// today's date.
import { readdirSync, readFileSync } from 'node:fs'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { processRunner } from '../build/core/engine/runner/process-runner.js'

const seed = process.env.STEMWORK_FUZZ_SEED ?? new Date().toISOString().slice(0, 10)
const seconds = Number(process.env.STEMWORK_FUZZ_SECONDS ?? Infinity)
const files = seconds < Infinity ? Infinity : Number(process.env.STEMWORK_FUZZ_FILES ?? 2000)
/**
 * A file that takes longer has hung the child process; the slowest file is always named. Generous, because the machine
 * may be shared.
 */
const mostMs = 60_000
const startMs = 300_000
const mostMebibytes = 1024
const soundEvery = 50

const fixtures = join(import.meta.dirname, '../test/fixtures/audio')
const sources = readdirSync(fixtures).map((name) => ({ name, bytes: readFileSync(join(fixtures, name)) }))
const sound = 'stereo.m4a'

/** Reproducible numbers in 0..1 (mulberry32), seeded by a hash of the text. */
function randomOf(text) {
  let state = [...text].reduce((sum, letter) => (Math.imul(sum, 31) + letter.charCodeAt(0)) | 0, 7)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Boundary values that replace counts and sizes. */
const edges = [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff]

/** Makes one to eight changes to a file, most of them in its first kilobyte, where the headers are. */
function mutate(source, random) {
  let bytes = Buffer.from(source)
  const below = (limit) => Math.floor(random() * limit)
  const place = () => below(random() < 0.6 ? Math.min(1024, bytes.length) : bytes.length)
  for (let change = 1 + below(8); change > 0 && bytes.length > 16; change--) {
    const at = place()
    switch (below(7)) {
      case 0:
        bytes[at] ^= 1 << below(8)
        break
      case 1:
        bytes[at] = below(256)
        break
      case 2:
      case 3: {
        const start = Math.min(at, bytes.length - 4)
        const value = edges[below(edges.length)]
        if (random() < 0.5) bytes.writeUInt32BE(value, start)
        else bytes.writeUInt32LE(value, start)
        break
      }
      case 4:
        bytes = bytes.subarray(0, random() < 0.3 ? at : bytes.length)
        break
      case 5: {
        const end = Math.min(bytes.length, at + below(200))
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)])
        break
      }
      default: {
        const end = Math.min(bytes.length, at + below(2000))
        bytes = Buffer.concat([bytes.subarray(0, end), bytes.subarray(at, end), bytes.subarray(end)])
      }
    }
  }
  return bytes
}

const folder = await mkdtemp(join(tmpdir(), 'stemwork-fuzz-'))
const path = join(folder, 'file')
const runner = processRunner({
  resolve: () => {
    throw new Error('the decoding runs in a child')
  },
})

async function decode(limitMs = mostMs) {
  const { details } = await runner.run(
    {
      jobId: 'fuzz',
      workflow: 'test/decode',
      module: new URL('../test/fixtures/decode-workflow.mjs', import.meta.url).href,
      settings: null,
      params: {},
      inputs: { file: { path, bytes: 0 } },
      directory: folder,
      limits: { maxAudioSeconds: 600 },
    },
    { signal: AbortSignal.timeout(limitMs), onProgress: () => {} },
  )
  return details
}

async function decodeSound() {
  await copyFile(join(fixtures, sound), path)
  return (await decode(startMs)).checksum
}

console.log(`Seed ${seed}, ${sources.length} files, ${cpus().length} x ${cpus()[0]?.model}, Node ${process.version}`)
const expected = await decodeSound()
const startedAt = performance.now()
const failures = []
const counts = { decoded: 0, refused: 0 }
const slowest = { ms: 0, what: '' }
let mebibytes = 0

for (let index = 0; index < files && performance.now() - startedAt < seconds * 1000; index++) {
  const random = randomOf(`${seed}/${index}`)
  const { name, bytes } = sources[Math.floor(random() * sources.length)]
  const what = `file ${index} (${name})`
  await writeFile(path, mutate(bytes, random))
  const from = performance.now()
  try {
    mebibytes = Math.max(mebibytes, (await decode()).mebibytes)
    counts.decoded++
  } catch (error) {
    if (error.code === 'BAD_INPUT' && !error.retryable) counts.refused++
    else failures.push(`${what}: ${error.message} ${error.cause ?? ''}`)
  }
  const ms = performance.now() - from
  if (ms > slowest.ms) Object.assign(slowest, { ms, what })
  if (index % soundEvery === soundEvery - 1 && (await decodeSound()) !== expected)
    failures.push(`${what}: the next sound file was decoded differently`)
}
if (runner.status().restarts > 0) failures.push(`the child died ${runner.status().restarts} times`)
if (mebibytes > mostMebibytes) failures.push(`the child used ${mebibytes} MiB`)
await runner.close()
await rm(folder, { recursive: true })

const total = counts.decoded + counts.refused + failures.length
const wall = ((performance.now() - startedAt) / 1000).toFixed(0)
console.log(
  `${total} files in ${wall} s: ${counts.decoded} decoded, ${counts.refused} refused, ${failures.length} failures`,
)
console.log(`Slowest: ${slowest.ms.toFixed(0)} ms, ${slowest.what}. Peak memory of the child: ${mebibytes} MiB`)
for (const failure of failures)
  console.error(`FAILED ${failure}\n  again: STEMWORK_FUZZ_SEED=${seed} npm run bench -- fuzz`)
process.exitCode = failures.length > 0 ? 1 : 0
