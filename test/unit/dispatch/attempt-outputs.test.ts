import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { publishOutputs } from '../../../src/core/engine/dispatch/attempt/attempt-outputs.js'
import { loopback } from '../../fetch/loopback-server.js'
import { temporaryFolder } from '../../temporary-folder.js'

const directory = temporaryFolder()
const path = join(directory, 'song')
const song = { contentType: 'audio/wav', fileName: 'song.wav', bytes: 5 }
beforeAll(() => writeFile(path, 'la la'))

test('an output goes where the client wants it, or into the store under the claim of the job', async () => {
  const server = await loopback((request, response) => void request.resume().on('end', () => response.end()))
  const blobs = memoryBlobs()
  const lease = { owner: 'w', token: 3, nonce: 'n', until: 0 }
  const job = sampleJob({ id: 'job', token: 3, lease, copyResultsTo: { sent: `${server.url}mine` } })
  let files = 0
  const file = { ...song, path, downloadName: 'La.wav' }
  const outputs = await publishOutputs({ outputs: { sent: file, kept: file }, details: {} }, job, {
    blobs,
    policy: server.policy,
    signal: new AbortController().signal,
    onFile: () => void files++,
    throughOutage: (work) => work(),
  })
  expect(outputs).toEqual({
    sent: { ...song, key: '', copied: true },
    kept: { ...song, key: 'results/job/3-n/song.wav', downloadName: 'La.wav' },
  })
  expect(server.requests.map(({ method, url }) => [method, url])).toEqual([['PUT', '/mine']])
  expect(await blobs.stat('results/job/3-n/song.wav')).toMatchObject({ bytes: 5 })
  expect(files).toBe(2)
})
