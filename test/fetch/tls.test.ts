import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { guardedFetch } from '../../src/core/engine/fetch/guarded-fetch.js'
import { certificatePath, loopback, rejection, secureLoopback } from './loopback-server.js'

const client = fileURLToPath(new URL('./fixtures/trusting-client.mjs', import.meta.url))

async function fetchTrusting(url: string): Promise<unknown> {
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: fileURLToPath(certificatePath) }
  const { stdout } = await promisify(execFile)(process.execPath, [client, url], { env })
  return JSON.parse(stdout)
}

describe('https', () => {
  it('with an untrusted certificate fails, and not retryably', async () => {
    const server = await secureLoopback((_, response) => response.end('secret'))
    expect(await rejection(guardedFetch(server.url, { maxBytes: 1000, policy: server.policy }))).toMatchObject({
      code: 'BAD_INPUT',
      reason: 'download_failed',
      retryable: false,
      cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
    })
  })

  it.each(['localhost', '127.0.0.1', 'localhost.'])('with a trusted certificate for %s works', async (host) => {
    const server = await secureLoopback((_, response) => response.end('secret'))
    expect(await fetchTrusting(`https://${host}:${server.port}/`)).toEqual({ status: 200, text: 'secret' })
  })

  it('with a trusted certificate for another name fails', async () => {
    const server = await secureLoopback((_, response) => response.end('secret'))
    expect(await fetchTrusting(`https://other.example:${server.port}/`)).toMatchObject({
      reason: 'download_failed',
      cause: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
  })

  it('never redirects to http', async () => {
    const plain = await loopback((_, response) => response.end('plain'))
    const server = await secureLoopback((_, response) => response.writeHead(302, { location: plain.url }).end())
    expect(await fetchTrusting(server.url)).toMatchObject({
      reason: 'blocked_address',
      cause: expect.stringContaining('https to http'),
    })
    expect(plain.requests).toEqual([])
  })

  it('is fine as the target of a redirect from http', async () => {
    const server = await secureLoopback((_, response) => response.end('secret'))
    const plain = await loopback((_, response) => response.writeHead(302, { location: server.url }).end())
    expect(await fetchTrusting(plain.url)).toEqual({ status: 200, text: 'secret' })
  })

  it('spoken to a plain server fails', async () => {
    const server = await loopback((_, response) => response.end('plain'))
    const url = server.url.replace('http:', 'https:')
    expect(await rejection(guardedFetch(url, { maxBytes: 1000, policy: server.policy }))).toMatchObject({
      reason: 'download_failed',
    })
  })
})
