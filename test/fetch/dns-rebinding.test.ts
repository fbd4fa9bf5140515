import { connect } from 'node:net'
import { expect, it } from 'vitest'
import type { Dial } from '../../src/core/engine/fetch/dial.js'
import { dial as realDial } from '../../src/core/engine/fetch/dial.js'
import { guardedFetch } from '../../src/core/engine/fetch/guarded-fetch.js'
import { loopback, rejection } from './loopback-server.js'
import { rebindingNameServer } from './rebinding-server.js'

/** Records the vetted addresses, then connects to `port` on loopback instead. */
function redirectedDial(port: number): { dial: Dial; vetted: string[] } {
  const vetted: string[] = []
  return {
    vetted,
    dial: async (_target, addresses) => {
      vetted.push(...addresses.map(({ address }) => address))
      return connect(port, '127.0.0.1')
    },
  }
}

it('a name that turns private after the check is dialled at the address that was checked', async () => {
  const server = await loopback((_, response) => response.end('the public server'))
  const names = await rebindingNameServer(['93.184.216.34', '127.0.0.1'])
  const { dial, vetted } = redirectedDial(server.port)
  const response = await guardedFetch('http://rebind.example/', {
    maxBytes: 1000,
    policy: { resolver: names.resolver },
    dial,
  })
  for await (const piece of response.body) expect(Buffer.from(piece).toString()).toBe('the public server')
  expect(vetted).toEqual(['93.184.216.34'])
  expect(names.questions).toEqual(['rebind.example'])
})

it('a name that turns private between a redirect and its target is refused at the target', async () => {
  const server = await loopback((_, response) =>
    response.writeHead(302, { location: 'http://rebind.example/secret' }).end(),
  )
  const names = await rebindingNameServer(['93.184.216.34', '127.0.0.1'])
  const { dial, vetted } = redirectedDial(server.port)
  const error = await rejection(
    guardedFetch('http://rebind.example/', { maxBytes: 1000, policy: { resolver: names.resolver }, dial }),
  )
  expect(error).toMatchObject({ code: 'BAD_INPUT', reason: 'download_failed' })
  expect(vetted).toEqual(['93.184.216.34'])
  expect(names.questions).toEqual(['rebind.example', 'rebind.example'])
  expect(server.requests).toHaveLength(1)
})

it('a name that is private at the check is not dialled, even if it would be public a moment later', async () => {
  const names = await rebindingNameServer(['10.0.0.1', '93.184.216.34'])
  const { dial, vetted } = redirectedDial(1)
  await rejection(
    guardedFetch('http://rebind.example/', { maxBytes: 1000, policy: { resolver: names.resolver }, dial }),
  )
  expect(vetted).toEqual([])
  expect(names.questions).toHaveLength(1)
})

it('the real dial asks no name server: it goes to the vetted address under the name of the target', async () => {
  const server = await loopback((_, response) => response.end('found'))
  const names = await rebindingNameServer(['127.0.0.1', '127.0.0.99'])
  const policy = { resolver: names.resolver, allow: [`rebind.example:${server.port}`] }
  const response = await guardedFetch(`http://rebind.example:${server.port}/`, {
    maxBytes: 1000,
    policy,
    dial: realDial,
  })
  for await (const piece of response.body) expect(Buffer.from(piece).toString()).toBe('found')
  expect(names.questions).toEqual(['rebind.example'])
  expect(server.requests[0]!.headers.host).toBe(`rebind.example:${server.port}`)
})
