import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fetchInput } from '../../src/core/engine/fetch/fetch-input.js'
import { loopback, rejection } from './loopback-server.js'
import { folderOfEachTest } from '../temporary-folder.js'

const folder = folderOfEachTest()
const path = join(folder, 'input')

it('stores the file byte for byte and returns its size', async () => {
  const content = randomBytes(3_000_000)
  const server = await loopback((_, response) => response.end(content))
  expect(await fetchInput(server.url, path, { maxBytes: content.length, policy: server.policy })).toEqual({
    bytes: content.length,
  })
  expect((await readFile(path)).equals(content)).toBe(true)
})

it('slows a large download down to the speed of the disk, in little memory', async () => {
  const piece = Buffer.alloc(1_000_000, 1)
  const server = await loopback(async (_, response) => {
    for (let count = 0; count < 150; count++)
      if (!response.write(piece)) await new Promise((resolve) => response.once('drain', resolve))
    response.end()
  })
  const before = process.memoryUsage().rss
  let highest = before
  const watching = setInterval(() => (highest = Math.max(highest, process.memoryUsage().rss)), 5)
  const { bytes } = await fetchInput(server.url, path, { maxBytes: 200_000_000, policy: server.policy })
  clearInterval(watching)
  expect(bytes).toBe(150_000_000)
  expect(highest - before).toBeLessThan(90_000_000)
})

describe('an answer other than 200', () => {
  it.each([
    [204, false],
    [206, false],
    [304, false],
    [401, false],
    [403, false],
    [404, false],
    [410, false],
    [408, true],
    [429, true],
    [500, true],
    [502, true],
    [503, true],
  ])('%d fails with the status in the reason; retryable: %s', async (status, retryable) => {
    const server = await loopback((_, response) => response.writeHead(status).end())
    expect(await rejection(fetchInput(server.url, path, { maxBytes: 1000, policy: server.policy }))).toMatchObject({
      code: 'BAD_INPUT',
      reason: `download_http_${status}`,
      retryable,
    })
    expect(existsSync(path)).toBe(false)
  })
})

it('leaves no file behind when the body is too large or breaks off', async () => {
  const server = await loopback((request, response) => {
    response.write('x'.repeat(100_000))
    if (request.url === '/broken') setTimeout(() => response.destroy(), 30)
    else response.end('x'.repeat(100_000))
  })
  expect(await rejection(fetchInput(server.url, path, { maxBytes: 150_000, policy: server.policy }))).toMatchObject({
    reason: 'too_large',
  })
  expect(
    await rejection(fetchInput(`${server.url}broken`, path, { maxBytes: 1e9, policy: server.policy })),
  ).toMatchObject({ reason: 'download_failed', retryable: true })
  expect(existsSync(path)).toBe(false)
})

it('is aborted with the reason and leaves no file behind', async () => {
  const aborting = new AbortController()
  const reason = new Error('canceled')
  const server = await loopback((_, response) => {
    response.write('x'.repeat(100_000))
    setTimeout(() => aborting.abort(reason), 30)
  })
  expect(
    await rejection(fetchInput(server.url, path, { maxBytes: 1e9, policy: server.policy, signal: aborting.signal })),
  ).toBe(reason)
  expect(existsSync(path)).toBe(false)
})

it('passes on the error of a disk that cannot be written, which is not the fault of the input', async () => {
  const server = await loopback((_, response) => response.end('hello'))
  expect(
    await rejection(fetchInput(server.url, join(folder, 'absent', 'input'), { maxBytes: 1000, policy: server.policy })),
  ).toMatchObject({ code: 'ENOENT' })
})

it('never reads a file: URL', async () => {
  expect(
    await rejection(fetchInput(new URL(import.meta.url), path, { maxBytes: 1e9, policy: { allowPrivate: true } })),
  ).toMatchObject({ reason: 'blocked_address' })
})
