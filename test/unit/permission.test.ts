import { expect, test } from 'vitest'
import { watchKeys } from '../../src/http/auth/key-watch.js'
import type { KeyedCall } from '../../src/http/routing/call.js'
import { whilePermitted } from '../../src/http/routing/permission.js'

/** A call whose key is valid until `end`, which takes effect at the next check. */
function callWithKey(end: { ended: boolean } = { ended: false }): {
  call: KeyedCall
  watched: () => number
  gone: AbortController
} {
  const keyWatch = watchKeys({ getKey: async () => (end.ended ? undefined : ({ expiresAt: null } as never)) })
  let watched = 0
  const counting = {
    follow(keyId: string) {
      const { signal, release } = keyWatch.follow(keyId)
      watched++
      const once = () => {
        watched--
        release()
      }
      return { signal, release: once }
    },
  }
  const gone = new AbortController()
  const request = { signal: gone.signal }
  const call = { caller: { id: 'app', keyId: 'key' }, service: { keyWatch: counting }, request } as unknown as KeyedCall
  return { call, watched: () => watched, gone }
}

/** Items until the signal fires, like those of event streams. */
async function* untilEnd(signal: AbortSignal, log: string[]): AsyncGenerator<string, void, undefined> {
  log.push('opened')
  try {
    yield 'first'
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    yield 'last'
  } finally {
    log.push('closed')
  }
}

test('a reader that leaves ends what is waited for, and the key is watched no longer', async () => {
  const { call, watched } = callWithKey()
  const log: string[] = []
  const items = whilePermitted(call, (signal) => untilEnd(signal, log))
  expect(await items.next()).toEqual({ done: false, value: 'first' })
  expect(watched()).toBe(1)
  const waiting = items.next()
  expect(await items.return?.()).toEqual({ done: true, value: undefined })
  await waiting
  expect(log).toEqual(['opened', 'closed'])
  expect(watched()).toBe(0)
})

test('items of a reader that left before it began are never opened', async () => {
  const { call, watched } = callWithKey()
  const log: string[] = []
  const items = whilePermitted(call, (signal) => untilEnd(signal, log))
  await items.return?.()
  expect(await items.next()).toEqual({ done: true, value: undefined })
  expect(log).toEqual([])
  expect(watched()).toBe(0)
})

test('a client that goes ends the items, where its server does not close the body', async () => {
  const { call, watched, gone } = callWithKey()
  const seen: string[] = []
  for await (const item of whilePermitted(call, (signal) => untilEnd(signal, []))) {
    seen.push(item)
    gone.abort()
  }
  expect(seen).toEqual(['first', 'last'])
  expect(watched()).toBe(0)
})

test('the end of the key ends the items, and so does their own failure', async () => {
  const key = { ended: false }
  const { call, watched } = callWithKey(key)
  const log: string[] = []
  const seen: string[] = []
  key.ended = true
  for await (const item of whilePermitted(call, (signal) => untilEnd(signal, log))) seen.push(item)
  expect(seen).toEqual(['first', 'last'])
  expect(log).toEqual(['opened', 'closed'])
  expect(watched()).toBe(0)

  async function* failing(): AsyncGenerator<string, void, undefined> {
    yield 'first'
    throw new Error('the store is away')
  }
  const broken = whilePermitted(callWithKey().call, failing)
  await broken.next()
  await expect(broken.next()).rejects.toThrow('the store is away')
})
