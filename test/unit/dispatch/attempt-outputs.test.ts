import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { publishOutputs, type PublishContext } from '../../../src/core/engine/dispatch/attempt/attempt-outputs.js'
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

/** Publishes without a client's URL. Each file of the store is noted with the way in which it came there. */
async function stored(outputs: Record<string, object>): Promise<{ keys: string[]; ways: string[] }> {
  const ways: string[] = []
  const blobs = {
    put: async (key: string) => void ways.push(`copied ${key.split('/').at(-1)}`),
    putFile: async (key: string) => void ways.push(`moved ${key.split('/').at(-1)}`),
  } as unknown as PublishContext['blobs']
  const published = await publishOutputs({ outputs, details: {} } as never, sampleJob({ id: 'job' }), {
    blobs,
    policy: { allow: [] },
    signal: new AbortController().signal,
    onFile() {},
    throughOutage: (work) => work(),
  })
  return { keys: Object.values(published).map(({ key }) => key.split('/').at(-1)!), ways }
}

test('files whose names differ at most in case get names of their own, for stores that ignore case', async () => {
  const named = (fileName: string) => ({ ...song, fileName, path: join(directory, fileName) })
  const { keys } = await stored({ first: named('song.wav'), second: named('Song.wav'), third: named('other.wav') })
  expect(keys).toEqual(['song.wav', 'second-Song.wav', 'other.wav'])
  expect((await stored({ first: named('Song.wav'), second: named('song.wav') })).keys[1]).toBe('second-song.wav')
})

test('a file with several names is taken by the store only for the last of them', async () => {
  const at = (fileName: string, place: string) => ({ ...song, fileName, path: place })
  const other = join(directory, 'other')
  const { ways } = await stored({ a: at('a', path), b: at('b', other), c: at('c', path), d: at('d', path) })
  expect(ways).toEqual(['copied a', 'moved b', 'copied c', 'moved d'])
})
