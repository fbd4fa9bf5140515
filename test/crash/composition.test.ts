import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import type { JobOutput, JobStatus } from '../../src/core/engine/job/job.js'
import { noise, writeWav } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const script = fileURLToPath(new URL('./fixtures/composition-worker.mjs', import.meta.url))
const seconds = 24
const folder = temporaryFolder()
let song: string
const workers: ChildProcess[] = []

beforeAll(async () => {
  song = join(folder, 'song.wav')
  await writeWav(song, [noise(seconds * 44_100, 1), noise(seconds * 44_100, 2)], 44_100, '16')
})
afterAll(async () => {
  for (const worker of workers) worker.kill('SIGKILL')
})

function start(...args: string[]) {
  const worker = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  workers.push(worker)
  return worker
}

async function resultOf(worker: ReturnType<typeof start>, of: string) {
  const [printed] = await Promise.all([text(worker.stdout), once(worker, 'exit')])
  const done = JSON.parse(printed) as { status: JobStatus; outputs: Record<string, JobOutput> }
  const stems = ['vocals', 'accompaniments'].map((stem) => bytesOf(of, done.outputs[stem]?.key ?? ''))
  return { ...done, stems: await Promise.all(stems) }
}

async function bytesOf(of: string, key: string): Promise<Buffer> {
  const chunks = []
  const blobs = fsBlobs({ directory: join(of, 'blobs') })
  for await (const chunk of (await blobs.get(key))?.body ?? []) chunks.push(chunk)
  return Buffer.concat(chunks)
}

test('a separation in a composition continues after kill -9 of its worker; no earlier step is run again', async () => {
  const [whole, killed] = await Promise.all([mkdtemp(join(folder, 'whole-')), mkdtemp(join(folder, 'killed-'))])
  const expected = await resultOf(start(whole, song), whole)
  expect(expected.status).toBe('SUCCEEDED')

  // The worker is killed once a part of the separation is stored, after the finished step.
  const first = start(killed, song, '1')
  expect(await once(first, 'exit')).toEqual([null, 'SIGKILL'])
  const resumed = await resultOf(start(killed), killed)
  expect(resumed.status).toBe('SUCCEEDED')
  expect(resumed.outputs.vocals?.key).toMatch(/\/2-\w+\/vocals.flac$/)
  // The second worker continues at the next part: no part of the separation is kept twice.
  const parts = (await readFile(join(killed, 'parts.txt'), 'utf8')).trimEnd().split('\n')
  const [work] = /^work-separate-\w+/.exec(parts[0] ?? '') ?? []
  expect(parts).toEqual(parts.map((_, index) => `${work}/part-${index}`))
  expect(await readFile(join(killed, 'runs.txt'), 'utf8')).toBe('copy\n')
  resumed.stems.forEach((stem, index) => expect(stem.equals(expected.stems[index] ?? Buffer.alloc(0))).toBe(true))
})
