import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import type { AttemptCheckpoint } from '../../../src/core/engine/dispatch/attempt/attempt-checkpoint.js'
import { fetchInputs } from '../../../src/core/engine/dispatch/attempt/attempt-inputs.js'
import { type EngineSettings, resolveEngineOptions } from '../../../src/core/engine/options.js'
import type { Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { loopback } from '../../fetch/loopback-server.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const directory = folderOfEachTest()
afterEach(() => void vi.useRealTimers())

/** Fetches the server's answer as an input. */
async function fetchedFrom(
  server: Awaited<ReturnType<typeof loopback>>,
  inputs: EngineSettings['inputs'],
  haste?: () => number,
  kept?: { bytes: number },
) {
  const noted: unknown[] = []
  const checkpoint = {
    fetchInput: async () => kept,
    noteDownload: (...download: unknown[]) => void noted.push(download),
  } as unknown as AttemptCheckpoint
  const files = await fetchInputs({ inputs: ['inputUrl'] } as unknown as Workflow, directory, {
    job: sampleJob({ params: { inputUrl: `${server.url}song.mp3` }, uploads: {} }),
    blobs: memoryBlobs(),
    options: { ...resolveEngineOptions({ inputs }), fetch: server.policy },
    checkpoint,
    signal: new AbortController().signal,
    haste,
    throughOutage: (work) => work(),
  })
  return { files, noted }
}

test('a download has the time limit of the options', async () => {
  const server = await loopback((_, response) => void response.write('la'))
  await expect(fetchedFrom(server, { totalMs: 50 })).rejects.toMatchObject({ code: 'BAD_INPUT' })
})

test('a download may be as slow as the options say, or as fast as it is told to be', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  /** Sends 1,000 bytes, and two more after a minute. */
  async function slowly(minBytesPerSecond: number, haste: number) {
    let [asked, end] = [0, () => {}]
    const server = await loopback((_, response) => {
      response.write(Buffer.alloc(1000))
      end = () => void response.end('la')
    })
    return await fetchedFrom(server, { minBytesPerSecond }, () => {
      // The second call comes once it waits for more bytes.
      if (++asked === 2) setImmediate(() => (vi.advanceTimersByTime(60_000), end()))
      return haste
    })
  }
  const { files, noted } = await slowly(1, 1)
  const path = join(directory, 'input-inputUrl')
  expect(files).toEqual({ inputUrl: { path, bytes: 1002, name: 'song.mp3' } })
  expect(noted).toEqual([[0, files.inputUrl]])
  expect(await readFile(path)).toHaveLength(1002)
  await rm(path)
  await expect(slowly(1000, 1)).rejects.toMatchObject({ code: 'BAD_INPUT', retryable: false })
  await expect(slowly(1, 1000)).rejects.toMatchObject({ code: 'BAD_INPUT', retryable: true })
})

test('what an earlier attempt kept is not downloaded again', async () => {
  const server = await loopback((_, response) => void response.end('la'))
  expect(await fetchedFrom(server, {})).toMatchObject({ files: { inputUrl: { bytes: 2 } }, noted: [[0, {}]] })
  const { files, noted } = await fetchedFrom(server, {}, undefined, { bytes: 7 })
  expect(files).toMatchObject({ inputUrl: { bytes: 7, name: 'song.mp3' } })
  expect(noted).toEqual([])
})
