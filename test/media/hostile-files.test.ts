import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { StemworkError } from '../../src/core/engine/errors.js'
import { processRunner } from '../../src/core/engine/runner/process-runner.js'
import { hostileFiles } from './hostile-files.js'
import { fixture } from './test-signal.js'
import { temporaryFolder } from '../temporary-folder.js'

const runner = processRunner({
  resolve: () => {
    throw new Error('the decoding runs in a child')
  },
})
const folder = temporaryFolder()
afterAll(async () => {
  await runner.close()
})

/** Decodes in a child process with the limits of a service. A file that hangs it meets the test's own time limit. */
async function decode(): Promise<Record<string, unknown>> {
  const { details } = await runner.run(
    {
      jobId: 'hostile',
      workflow: 'test/decode',
      module: new URL('../fixtures/decode-workflow.mjs', import.meta.url).href,
      settings: null,
      params: {},
      inputs: { file: { path: join(folder, 'file'), bytes: 0 } },
      directory: folder,
      limits: { maxAudioSeconds: 600 },
    },
    { signal: new AbortController().signal, onProgress: () => {} },
  )
  return details
}

test('one child refuses each hostile file with a message or decodes what it can, then a song as before', async () => {
  await copyFile(fixture('stereo.m4a'), join(folder, 'file'))
  const song = await decode()
  const files = await hostileFiles()
  const outcomes: Record<string, string> = {}
  for (const [name, bytes] of files) {
    await writeFile(join(folder, 'file'), bytes)
    const outcome = await decode().catch((error: unknown) => error)
    if (outcome instanceof Error) {
      const isRefused = StemworkError.is(outcome) && outcome.code === 'BAD_INPUT' && !outcome.retryable
      outcomes[name] = isRefused ? 'refused' : `${outcome.message} ${String(outcome.cause)}`
    } else {
      const { seconds } = outcome as { seconds: number }
      outcomes[name] = seconds < 600 ? 'decoded' : `${seconds} seconds`
    }
  }
  expect(Object.keys(outcomes).length).toBeGreaterThan(60)
  expect(Object.entries(outcomes).filter(([, outcome]) => outcome !== 'refused' && outcome !== 'decoded')).toEqual([])
  await copyFile(fixture('stereo.m4a'), join(folder, 'file'))
  const after = await decode()
  expect({ ...after, mebibytes: 0 }).toEqual({ ...song, mebibytes: 0 })
  expect(runner.status().restarts).toBe(0)
  expect(after.mebibytes).toBeLessThan(1024)
}, 240_000)
