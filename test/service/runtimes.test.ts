import { beforeAll, describe, expect, test, vi } from 'vitest'
import { excerpt, startService } from '../cli/stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

// On WebAssembly, a process compiles the runtime before its first job.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const key = 'a-key-of-the-runtime-tests'
const stems = ['vocals', 'accompaniments'] as const
const folder = temporaryFolder()
let song: Buffer
beforeAll(async () => {
  song = await excerpt(folder, { fromSeconds: 8, seconds: 6 })
})

interface Job {
  id: string
  status: string
  result: Record<(typeof stems)[number], string>
  details: { runtime?: string; runtimeHint?: string }
}

type Ask = Omit<RequestInit, 'headers'> & { headers?: Record<string, string> }

/** Runs an upload, a job to its end, both downloads and the deletion; returns the job and the files. */
async function separateAt(baseUrl: string): Promise<{ job: Job; files: Buffer[] }> {
  const headers = { authorization: key, 'content-type': 'application/json' }
  const ask = async <Answer>(path: string, { headers: more, ...init }: Ask = {}): Promise<Answer> => {
    const response = await fetch(baseUrl + path, { ...init, headers: { ...headers, ...more } })
    const text = await response.text()
    expect(response.status, text).toBeLessThan(300)
    return JSON.parse(text || 'null') as Answer
  }
  const { uploadUrl, downloadUrl } = await ask<{ uploadUrl: string; downloadUrl: string }>('/upload')
  expect((await fetch(uploadUrl, { method: 'PUT', body: new Uint8Array(song) })).status).toBe(200)
  const request = { workflow: 'service/stems-vocals-accompaniment', params: { inputUrl: downloadUrl } }
  let job = await ask<Job>('/job', { method: 'POST', body: JSON.stringify(request) })
  while (job.status !== 'SUCCEEDED' && job.status !== 'FAILED')
    job = await ask<Job>(`/job/${job.id}`, { headers: { prefer: 'wait=30' } })
  expect(job).toMatchObject({ status: 'SUCCEEDED' })
  const files = await Promise.all(
    stems.map(async (stem) => Buffer.from(await (await fetch(job.result[stem])).arrayBuffer())),
  )
  await ask(`/job/${job.id}`, { method: 'DELETE' })
  return { job, files }
}

describe('the whole service on each runtime', () => {
  const found: Record<string, Buffer[]> = {}

  // One runtime by the option, one by the environment: both must reach the child process.
  for (const [runtime, args, env] of [
    ['native', ['--runtime', 'native'], { STEMWORK_RUNTIME: 'wasm' }],
    ['wasm', [], { STEMWORK_RUNTIME: 'wasm' }],
  ] as const) {
    test(`separates a song on ${runtime}, which the log at the start and the details name`, async () => {
      const { process, baseUrl } = await startService(['--threads', '1', '--api-keys', key, ...args], env)
      try {
        const [, facts = ''] = await process.printed('stderr', /The workflow is ready\. (\{.*\})/)
        expect(JSON.parse(facts)).toMatchObject({ runtime })
        const { job, files } = await separateAt(baseUrl)
        // The runtime was chosen, so no hint about a faster one is given.
        expect([job.details.runtime, job.details.runtimeHint]).toEqual([runtime, undefined])
        found[runtime] = files
      } finally {
        process.kill('SIGTERM')
        await process.finished()
      }
    })
  }

  test('with results that are the same to one step of 16 bits', () => {
    const { native = [], wasm = [] } = found
    expect(native).toHaveLength(2)
    for (const [index, file] of native.entries()) {
      let most = 0
      for (let at = 44; at + 1 < file.length; at += 2)
        most = Math.max(most, Math.abs(file.readInt16LE(at) - (wasm[index]?.readInt16LE(at) ?? Infinity)))
      expect(most).toBeLessThanOrEqual(1)
    }
  })
})
