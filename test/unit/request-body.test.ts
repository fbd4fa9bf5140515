import { expect, test } from 'vitest'
import { webRequestReader } from '../../src/http/routing/api-request.js'
import { RequestBody } from '../../src/http/routing/request-body.js'

const limits = { idleMs: 1000, minBytesPerSecond: 1 }

/** Whether a pass of the event loop ended before the end of the body was known. */
async function takesPass(headers: Record<string, string>): Promise<boolean> {
  const web = new Request('http://localhost', { method: 'POST', body: '{"a":1}', headers })
  const request = webRequestReader()(web)
  let hasPassed = false
  setImmediate(() => (hasPassed = true))
  const parts: string[] = []
  for await (const part of new RequestBody(request, { bodyRead: false }, limits).chunks())
    parts.push(Buffer.from(part).toString())
  expect(parts.join('')).toBe('{"a":1}')
  return hasPassed
}

test('a small body of known length ends in the pass of the event loop in which it came', async () => {
  expect(await takesPass({ 'content-length': '7' })).toBe(false)
})

test('one of unknown length, of which many small chunks may follow, ends after a pause', async () => {
  expect(await takesPass({})).toBe(true)
})
