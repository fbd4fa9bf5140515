import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type CopyOptions, copyResult } from '../../../src/core/engine/dispatch/attempt/copy-results.js'
import { temporaryFolder } from '../../temporary-folder.js'

const directory = temporaryFolder()
let server: Server
let url: string
/** Statuses of the next answers; 0: the connection is cut without an answer. */
let answers: number[]
/** Status of an answer that begins but never ends. */
const endless = 1
let onEndlessClosed: () => void
let seen: { method: string | undefined; headers: IncomingMessage['headers']; content: string; at: number }[]

beforeAll(async () => {
  await writeFile(join(directory, 'song'), 'la la')
  server = createServer((request, response) => {
    const at = performance.now()
    const { method, headers, socket } = request
    let content = ''
    request.on('data', (chunk: Buffer) => (content += chunk.toString()))
    request.on('end', () => {
      seen.push({ method, headers, content, at })
      const status = answers.shift() ?? 200
      if (status === endless) {
        response.on('close', onEndlessClosed)
        return void response.writeHead(200).write('x')
      }
      if (status === 0) socket.destroy()
      else response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end('x')
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})

afterAll(async () => {
  server.closeAllConnections()
  server.close()
})

beforeEach(() => {
  answers = []
  seen = []
})

function copy(options: Partial<CopyOptions> = {}) {
  const file = { path: join(directory, 'song'), bytes: 5, contentType: 'audio/wav', fileName: 'song.wav' }
  const { signal } = new AbortController()
  return copyResult('song', file, url, { signal, policy: { allowPrivate: true }, retryDelaysMs: [20, 30], ...options })
}

test('a result is sent in one PUT with its length and type', async () => {
  await copy()
  expect(seen).toMatchObject([
    { method: 'PUT', headers: { 'content-type': 'audio/wav', 'content-length': '5' }, content: 'la la' },
  ])
})

test.each([500, 503, 429, 0])('after %i it is sent again', async (status) => {
  answers = [status, status, 299]
  await copy()
  expect(seen.map(({ content }) => content)).toEqual(['la la', 'la la', 'la la'])
  expect(seen[1]!.at - seen[0]!.at).toBeGreaterThan(17)
  expect(seen[2]!.at - seen[1]!.at).toBeGreaterThan(27)
})

test.each([403, 300, 499])('after %i it is not sent again', async (status) => {
  answers = [status]
  await expect(copy()).rejects.toMatchObject({
    code: 'BAD_INPUT',
    reason: 'copy_failed',
    message: expect.stringMatching(new RegExp(`"song".*the storage answered ${status}`)),
  })
  expect(seen).toHaveLength(1)
})

test('the answer is not read, however long it is', async () => {
  const closed = new Promise<void>((resolve) => (onEndlessClosed = resolve))
  answers = [endless]
  await copy()
  await closed
})

test('no redirect is followed', async () => {
  answers = [302]
  await expect(copy({ retryDelaysMs: [] })).rejects.toMatchObject({ reason: 'copy_failed' })
  expect(seen).toHaveLength(1)
})

test('after its last try, the last failure is thrown', async () => {
  answers = [500, 0, 502]
  await expect(copy()).rejects.toThrow('the storage answered 502')
  answers = [500, 500, 0]
  await expect(copy()).rejects.toMatchObject({
    reason: 'copy_failed',
    message: expect.stringContaining('could not be reached'),
    cause: expect.any(Error),
  })
  expect(seen).toHaveLength(6)
})

test('an abort ends it with its own reason, even while it waits', async () => {
  const reason = new Error('enough')
  await expect(copy({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  expect(seen).toHaveLength(0)
  answers = [500]
  const abort = new AbortController()
  const copying = copy({ signal: abort.signal, retryDelaysMs: [60_000] })
  await expect.poll(() => seen.length).toBe(1)
  abort.abort(reason)
  await expect(copying).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
})

test('addresses that the policy refuses are not reached', async () => {
  await expect(copy({ policy: {}, retryDelaysMs: [] })).rejects.toMatchObject({ reason: 'copy_failed' })
  expect(seen).toHaveLength(0)
})
