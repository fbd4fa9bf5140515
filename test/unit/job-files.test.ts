import { describe, expect, test } from 'vitest'
import { attachment } from '../../src/core/engine/job/attachment.js'
import {
  attemptPrefix,
  checkBlobKey,
  checkBlobPrefix,
  checksPrefix,
  deploymentKey,
  isOfTicket,
  localUploadKey,
  parseResultKey,
  peaksKey,
  uploadKey,
} from '../../src/core/engine/job/blob-keys.js'
import {
  checkpointChain,
  claimCheckpointPrefix,
  jobOfCheckpoint,
  keptInputKey,
  partKey,
  stepValueKey,
} from '../../src/core/engine/job/checkpoint-keys.js'
import { downloadName, nameInUrl, notOfADevice } from '../../src/core/engine/job/download-name.js'
import { resultBytes } from '../../src/core/engine/job/result-bytes.js'

const lease = { owner: 'w', token: 3, nonce: 'n', until: 0 }

describe('the keys of files', () => {
  test('name the job, the claim and the file', () => {
    expect(attemptPrefix({ id: 'job', token: 3, lease })).toBe('results/job/3-n/')
    // A claim without a nonce, and a record without a lease.
    expect(attemptPrefix({ id: 'job', token: 3, lease: { ...lease, nonce: '' } })).toBe('results/job/3/')
    expect(attemptPrefix({ id: 'job', token: 3, lease: null })).toBe('results/job/3/')
    expect(peaksKey('results/job/3-n/vocals.wav')).toBe('results/job/3-n/vocals.wav.peaks')
    expect(uploadKey('app', 'ticket')).toBe('uploads/app/ticket')
    expect([checksPrefix, deploymentKey]).toEqual(['checks/', 'deployment'])
  })

  test('distinguish uploads by ticket from files of this machine, whatever the name of the application', () => {
    expect(localUploadKey('app', 'id')).toBe('uploads/app/local-id')
    for (const app of ['app', 'local-app'])
      expect([isOfTicket(uploadKey(app, 'ticket')), isOfTicket(localUploadKey(app, 'id'))]).toEqual([true, false])
  })

  test('of results can be parsed, and other keys cannot', () => {
    expect(parseResultKey('results/job/3-n/vocals.wav')).toEqual({ jobId: 'job', token: 3, nonce: 'n' })
    expect(parseResultKey('results/job/12/vocals.wav')).toEqual({ jobId: 'job', token: 12, nonce: '' })
    for (const key of ['results/job/x/vocals.wav', 'results/job/3', 'uploads/app/1', ''])
      expect(parseResultKey(key)).toBeUndefined()
  })

  test('are refused unless every blob store can take them', () => {
    const long = 'a/'.repeat(449) + 'bc'
    expect(long.length).toBe(900)
    for (const key of ['a', 'results/job/3-n/a_b.wav', '..a', 'a'.repeat(200), long])
      expect([checkBlobKey(key), checkBlobPrefix(`${key.slice(0, 899)}/`)]).toEqual([key, `${key.slice(0, 899)}/`])
    const invalid = expect.objectContaining({ code: 'INVALID_PARAMS' })
    for (const key of ['', '/', '.', '..', 'a/../b', 'a//b', 'a/', '/a', 'a b', 'ä', 'a'.repeat(201), `${long}d`])
      expect(() => checkBlobKey(key), key).toThrow(invalid)
    for (const prefix of ['', '/', 'a', 'a//', '../', 'a/b', 'ab', 'a b/', `${long}/`])
      expect(() => checkBlobPrefix(prefix), prefix).toThrow(invalid)
  })
})

describe('the keys of checkpoints', () => {
  const claim = (token: number, nonce = 'n') =>
    claimCheckpointPrefix({ id: 'job', token, lease: { ...lease, token, nonce } })

  test('name the job, the claim and the part', () => {
    expect(claim(3)).toBe('checkpoints/job/3-n/')
    expect(claimCheckpointPrefix({ id: 'job', token: 3, lease: null })).toBe('checkpoints/job/3-/')
    expect([partKey(claim(3), 0), keptInputKey(claim(3), 1)]).toEqual([
      'checkpoints/job/3-n/part-0',
      'checkpoints/job/3-n/input-1',
    ])
    expect(['checkpoints/job/3-n/part-0', 'results/job/3/a', 'checkpoints/job'].map(jobOfCheckpoint)).toEqual([
      'job',
      undefined,
      undefined,
    ])
  })

  test('are joined in the order of the claims, in whatever order they are listed', () => {
    const key = (token: number, part: number) => partKey(claim(token), part)
    const chain = (...keys: string[]) => checkpointChain(keys).chains.get('')
    expect(chain(key(10, 3), key(2, 2), key(1, 1), key(1, 0))).toEqual([key(1, 0), key(1, 1), key(2, 2), key(10, 3)])
    expect(chain(key(1, 0), key(1, 1), key(1, 2), key(2, 1))).toEqual([key(1, 0), key(2, 1)])
    expect(chain(key(2, 2), key(3, 0))).toEqual([key(3, 0)])
    expect(chain(key(1, 0), key(2, 2))).toEqual([key(1, 0)])
    expect(chain(key(10, 1), 'other', key(2, 0), 'another', key(1, 0))).toEqual([key(2, 0), key(10, 1)])
    expect(chain(key(1, 0), 'checkpoints/job/x/part-1', 'checkpoints/job/2-n/part-1.tmp', 'other')).toEqual([key(1, 0)])
  })

  test('of a step contain only its work', () => {
    const key = (token: number, part: number, work: string) => partKey(claim(token), part, work)
    expect(key(1, 0, 'a-1')).toBe('checkpoints/job/1-n/work-a-1/part-0')
    const keys = [key(2, 1, 'a-1'), key(1, 0, 'a-1'), key(1, 0, 'b-1'), key(2, 1, 'a-2'), partKey(claim(2), 0)]
    expect(Object.fromEntries(checkpointChain(keys).chains)).toEqual({
      '': [keys[4]],
      'a-1': [keys[1], keys[0]],
      'b-1': [keys[2]],
      'a-2': [],
    })
    expect(stepValueKey(claim(1), 'a')).toBe('checkpoints/job/1-n/value-a')
  })

  test('of kept inputs: the one of the latest claim is valid', () => {
    const input = (token: number, index: number, nonce?: string) => keptInputKey(claim(token, nonce), index)
    const { inputs, chains } = checkpointChain([input(2, 0), input(10, 0), input(3, 0), input(1, 1), input(1, 1, 'o')])
    expect([...inputs]).toEqual([
      [0, input(10, 0)],
      [1, input(1, 1, 'o')],
    ])
    expect(chains.size).toBe(0)
  })
})

describe('the name of a download', () => {
  test('drops characters that would end the header or its text, and keeps all others', () => {
    expect(attachment('song (vocals).wav')).toBe('attachment; filename="song (vocals).wav"')
    expect(attachment('a"b\\c%d.wav')).toBe(`attachment; filename="a_b_c_d.wav"; filename*=UTF-8''a%22b%5Cc%25d.wav`)
    expect(attachment("é'(*)\n.wav")).toBe(
      `attachment; filename="_'(*)_.wav"; filename*=UTF-8''%C3%A9%27%28%2a%29%0A.wav`,
    )
    // Half of a surrogate pair, which a URL cannot contain.
    expect(attachment('a\ud800b')).toBe('attachment; filename="a_b"')
  })

  test('never leads out of its folder and is at most 255 characters long', () => {
    expect(['con', 'LPT1.txt', 'com0', 'console', 'my.con'].map(notOfADevice)).toEqual([
      '_con',
      '_LPT1.txt',
      '_com0',
      'console',
      'my.con',
    ])
    expect(downloadName('../a\\b\u0000c\u2028d\ud800e')).toBe('.._a_b_c_d_e')
    expect(downloadName('🎵'.repeat(255))).toBe('🎵'.repeat(255))
    expect(downloadName('🎵'.repeat(256))).toBe('🎵'.repeat(255))
  })

  test('is the last part of a URL, decoded', () => {
    expect(nameInUrl('https://x.test/a/my%20song.mp3?b=/c')).toBe('my song.mp3')
    expect(nameInUrl('https://x.test/a%2Fb%FF')).toBe('a%2Fb%FF')
    expect(nameInUrl('https://x.test/a%2Fb')).toBe('a_b')
    for (const url of ['https://x.test/', 'https://x.test/a/', 'no address'])
      expect(nameInUrl(url), url).toBeUndefined()
  })
})

test('the results of a job take up the size of its files, unless they are gone or were sent to the client', () => {
  const file = { key: 'k', contentType: 'audio/wav', fileName: 'a.wav' }
  const outputs = { a: { ...file, bytes: 3 }, b: { ...file, bytes: 4, copied: true }, c: { ...file, bytes: 5 } }
  const job = { deleted: false, expired: false, outputs }
  expect(resultBytes(job)).toBe(8)
  expect(resultBytes({ ...job, outputs: null })).toBe(0)
  expect([resultBytes({ ...job, deleted: true }), resultBytes({ ...job, expired: true })]).toEqual([0, 0])
})
