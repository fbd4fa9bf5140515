import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { StemworkError } from '../../core/engine/errors.js'
import {
  assertNothingUnder,
  type BlobStoreContext,
  countLongBody,
  HeldBytes,
  keysUnder,
  longSource,
  ManualSource,
  read,
  readKey,
  sourceOf,
} from '../blob-samples.js'
import { assertFails, assertNone } from '../broken-promise.js'
import type { Cases } from '../suite.js'

const key = 'results/job-1/1/vocals.wav'
const longBytes = 50_000_000

export const blobWriteCases = {
  async 'a blob is read back as it was written, with its type, size and time'({ store }) {
    const bytes = randomBytes(300_001)
    const before = Date.now()
    const put = await store.put(
      key,
      sourceOf(bytes.subarray(0, 1), bytes.subarray(1, 200_000), bytes.subarray(200_000)),
      {
        contentType: 'audio/wav',
      },
    )
    assert.deepEqual(
      [put.key, put.bytes, put.contentType],
      [key, bytes.byteLength, 'audio/wav'],
      'put returns the key, the size in bytes and the content type.',
    )
    assert.ok(put.etag.length > 0 && !put.etag.includes('"'), 'An etag is not empty and has no quotes.')
    // A remote store has its own clock, perhaps in whole seconds.
    assert.ok(
      Math.abs(put.modifiedAt - before) < 120_000,
      `modifiedAt is the time of the put, within two minutes: ${before}, and not ${put.modifiedAt}.`,
    )
    const found = await store.get(key)
    assert.ok(found, 'The blob is found.')
    assert.deepEqual(found.stat, put, 'get gives the stat that put returned.')
    assert.ok((await read(found.body)).equals(bytes), 'The bytes of a blob are those that were put.')
    assert.deepEqual(await store.stat(key), put, 'stat gives what put returned.')
  },

  async 'a blob may be empty'({ store }) {
    for (const [name, source] of [
      ['none', sourceOf()],
      ['empty', sourceOf('')],
    ] as const) {
      const put = await store.put(`uploads/app/${name}`, source)
      assert.equal(put.bytes, 0, 'An empty source makes a blob of 0 bytes.')
      assert.equal(await readKey(store, `uploads/app/${name}`), '', 'An empty blob has an empty body.')
      assert.deepEqual(await store.stat(`uploads/app/${name}`), put, 'stat of an empty blob gives what put returned.')
    }
  },

  async 'the content type is kept, and is application/octet-stream if none is given'({ store }) {
    assert.equal(
      (await store.put(key, sourceOf('a'))).contentType,
      'application/octet-stream',
      'Without a content type a blob is application/octet-stream.',
    )
    const contentType = 'text/plain; charset="utf-8"'
    assert.equal(
      (await store.put(key, sourceOf('a'), { contentType })).contentType,
      contentType,
      'put returns the content type as it was given.',
    )
    assert.equal((await store.stat(key))?.contentType, contentType, 'stat gives the content type as it was put.')
  },

  async 'a string or a buffer can be put instead of a stream'({ store }) {
    const text = 'caf\u00e9'
    assert.equal((await store.put('texts/1', text)).bytes, 5, 'A string is stored as UTF-8, so this one has 5 bytes.')
    assert.equal(
      (await store.put('texts/2', Buffer.from(text))).bytes,
      5,
      'A buffer is stored as its bytes, so this one has 5.',
    )
    assert.equal((await store.put('texts/3', '')).bytes, 0, 'An empty string makes a blob of 0 bytes.')
    for (const [name, stored] of Object.entries({ 'texts/1': text, 'texts/2': text, 'texts/3': '' }))
      assert.equal(
        await readKey(store, name),
        Buffer.from(stored).toString('latin1'),
        `${name} has the bytes that were put.`,
      )
    const numbers = (async function* () {
      yield 1
    })() as unknown as AsyncIterable<Uint8Array>
    await assertFails(
      store.put('texts/4', numbers),
      undefined,
      'A stream of numbers is no content of a blob: put fails.',
    )
    assertNone(await store.stat('texts/4'), 'A put that failed leaves no blob.')
  },

  async 'a put replaces the blob and changes its etag, even if the size stays the same'({ store }) {
    const first = await store.put(key, sourceOf('one'), { contentType: 'text/plain' })
    const second = await store.put(key, sourceOf('two'), { contentType: 'audio/wav' })
    assert.notEqual(first.etag, second.etag, 'Each put makes a new etag.')
    assert.equal(await readKey(store, key), 'two', 'A second put replaces the bytes.')
    assert.deepEqual(await store.stat(key), second, 'stat gives what the second put returned.')
    assert.deepEqual(await keysUnder(store, 'results/'), [key], 'list shows a replaced blob once.')
  },

  async 'put with ifAbsent creates a new blob and never changes an existing one'({ store }) {
    const first = await store.put(key, sourceOf('first'), { ifAbsent: true })
    await assertFails(
      store.put(key, sourceOf('second'), { ifAbsent: true }),
      'ALREADY_EXISTS',
      'put with ifAbsent fails with ALREADY_EXISTS where there is a blob.',
    )
    assert.equal(await readKey(store, key), 'first', 'A refused put with ifAbsent leaves the bytes of the first.')
    assert.deepEqual(await store.stat(key), first, 'A refused put with ifAbsent leaves the stat of the first.')
    assert.equal((await store.cleanUp?.(Infinity)) ?? 0, 0, 'A refused put with ifAbsent leaves nothing to clean up.')
    await store.delete(key)
    assert.ok(
      await store.put(key, sourceOf('third'), { ifAbsent: true }),
      'put with ifAbsent stores a blob where the old one was deleted.',
    )
  },

  async 'exactly one of several racing writers with ifAbsent wins, and its bytes are kept'({ store }) {
    for (let round = 0; round < 5; round++) {
      const key = `uploads/app/ticket-${round}`
      const outcomes = await Promise.allSettled(
        Array.from({ length: 6 }, (_, n) => store.put(key, sourceOf(`writer ${n}`, `, ${n}`), { ifAbsent: true })),
      )
      const winners = outcomes.flatMap((outcome, n) => (outcome.status === 'fulfilled' ? [n] : []))
      assert.equal(winners.length, 1, 'Exactly one of six simultaneous puts with ifAbsent wins.')
      assert.equal(
        await readKey(store, key),
        `writer ${winners[0]}, ${winners[0]}`,
        'The blob has the bytes of the writer that won.',
      )
      for (const outcome of outcomes)
        if (outcome.status === 'rejected')
          assert.ok(
            StemworkError.is(outcome.reason) && outcome.reason.code === 'ALREADY_EXISTS',
            `A put that loses the race fails with ALREADY_EXISTS. It failed with ${String(outcome.reason)}.`,
          )
    }
  },

  async 'racing writers without ifAbsent leave the complete blob of one of them'({ store }) {
    const bodies = Array.from({ length: 5 }, (_, n) => String(n).repeat(100_000 + n))
    await Promise.all(bodies.map((body) => store.put(key, sourceOf(body.slice(0, 50_000), body.slice(50_000)))))
    const stored = await readKey(store, key)
    assert.ok(
      stored !== undefined && bodies.includes(stored),
      'After simultaneous puts the blob is the complete blob of one of them.',
    )
    assert.equal((await store.stat(key))?.bytes, stored.length, 'stat describes the blob that is there.')
  },

  async 'a blob is not visible before its last byte is stored'({ store }) {
    const source = new ManualSource()
    const put = store.put(key, source)
    await source.give('half')
    assertNone(await store.get(key), 'get does not find a blob before its last byte is stored.')
    assertNone(await store.stat(key), 'stat does not find a blob before its last byte is stored.')
    assert.deepEqual(
      await keysUnder(store, 'results/'),
      [],
      'list does not show a blob before its last byte is stored.',
    )
    await source.give(' and half')
    await source.end()
    await put
    assert.equal(await readKey(store, key), 'half and half', 'A finished put shows all of its bytes.')
  },

  async 'if the source throws, put fails with that error and leaves nothing'({ store }) {
    const broken = new Error('the connection was lost')
    await assertFails(
      store.put(key, failing(broken)),
      broken,
      'put fails with the error that its source threw, unchanged.',
    )
    await assertNothingUnder(store, key)
  },

  async 'if the source throws at once, put fails with that error and leaves nothing'({ store }) {
    const broken = new Error('refused')
    const source = {
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(broken) }),
    }
    await assertFails(
      store.put(key, source),
      broken,
      'put fails with the error that its source threw at once, unchanged.',
    )
    await assertNothingUnder(store, key)
  },

  async 'if the source throws, the old blob is kept'({ store }) {
    const old = await store.put(key, sourceOf('old'))
    await assertFails(store.put(key, failing(new Error('lost'))), undefined, 'put fails when its source throws.')
    assert.equal(await readKey(store, key), 'old', 'A put that failed leaves the bytes of the old blob.')
    assert.deepEqual(await store.stat(key), old, 'A put that failed leaves the stat of the old blob.')
    assert.equal((await store.cleanUp?.(Infinity)) ?? 0, 0, 'A put that failed leaves nothing to clean up.')
  },

  async 'an aborted put fails at once with the reason, even if the source is silent, and leaves nothing'({ store }) {
    const reason = new Error('the client went away')
    const control = new AbortController()
    const source = new ManualSource()
    const put = store.put(key, source, { signal: control.signal })
    await source.give('half')
    control.abort(reason)
    await assertFails(put, reason, 'An aborted put fails with the reason of the signal, at once.')
    await assertNothingUnder(store, key)
  },

  async 'an abort closes the source'({ store }) {
    const control = new AbortController()
    const stop = new Error('stop')
    let ended = () => {}
    const whenEnded = new Promise<void>((resolve) => (ended = resolve))
    const source = (async function* () {
      try {
        for (let n = 0; ; n++) {
          if (n === 3) control.abort(stop)
          yield Buffer.from('chunk')
        }
      } finally {
        ended()
      }
    })()
    await assertFails(
      store.put(key, source, { signal: control.signal }),
      stop,
      'An aborted put fails with the reason of the signal.',
    )
    await whenEnded
    await assertNothingUnder(store, key)
  },

  async 'a put whose signal was already aborted stores nothing'({ store }) {
    const old = await store.put(key, sourceOf('old'))
    const reason = new Error('too late')
    await assertFails(
      store.put(key, sourceOf('new'), { signal: AbortSignal.abort(reason) }),
      reason,
      'A put whose signal was already aborted fails with the reason of the signal.',
    )
    assert.deepEqual(await store.stat(key), old, 'A put whose signal was already aborted leaves the old blob.')
    assert.equal(
      (await store.cleanUp?.(Infinity)) ?? 0,
      0,
      'A put whose signal was already aborted leaves nothing to clean up.',
    )
  },

  async 'the memory of a chunk may be used again once the store requests the next'({ store }) {
    const memory = Buffer.alloc(65_536)
    const chunks = Array.from({ length: 128 }, (_, index) => Buffer.alloc(index % 2 ? memory.byteLength : 1000, index))
    await store.put(
      key,
      (async function* () {
        for (const chunk of chunks) {
          memory.set(chunk)
          yield memory.subarray(0, chunk.byteLength)
          memory.fill('used again')
        }
      })(),
    )
    const found = await store.get(key)
    assert.ok(found, 'The blob is found.')
    assert.ok(
      (await read(found.body)).equals(Buffer.concat(chunks)),
      'put is done with a chunk, or has a copy, when it requests the next. `fetch` and writable streams need a copy.',
    )
  },

  async '50 MB are written and read without being held in memory'({ store, maxHeldBytes = 24 * 1024 * 1024 }) {
    // The source allocates its own buffers with its first block.
    const source = longSource(longBytes, () => held.block())
    const first = await source.next()
    const held = new HeldBytes()
    const put = await store.put(
      key,
      (async function* () {
        if (!first.done) yield first.value
        yield* source
      })(),
    )
    assert.equal(put.bytes, longBytes, 'put counts the bytes of a long stream.')
    assert.ok(
      held.peak <= maxHeldBytes,
      `A put holds at most ${maxHeldBytes} bytes of a long stream. It held ${held.peak}.`,
    )
    const found = await store.get(key)
    assert.ok(found, 'The long blob is found.')
    const reading = new HeldBytes()
    assert.equal(await countLongBody(found.body, reading.block), longBytes, 'get delivers all bytes of a long blob.')
    assert.ok(
      reading.peak <= maxHeldBytes,
      `A get holds at most ${maxHeldBytes} bytes of a long blob. It held ${reading.peak}.`,
    )
  },

  async 'a write that is unfinished when its prefix is deleted fails and never becomes visible'({ store }) {
    const source = new ManualSource()
    const put = store.put(key, source)
    await source.give('half')
    const outcome = put.then(
      () => undefined,
      (error: unknown) => error,
    )
    await store.deletePrefix('results/job-1/')
    void source.give(' and half').catch(() => {})
    await source.end()
    const error = await outcome
    assert.ok(
      StemworkError.is(error) && error.code === 'STORE_UNAVAILABLE',
      `A write under a prefix that was deleted meanwhile fails with STORE_UNAVAILABLE. It ended with ${String(error)}.`,
    )
    await assertNothingUnder(store, key)
  },
} satisfies Cases<BlobStoreContext>

async function* failing(error: Error): AsyncGenerator<Uint8Array, void, void> {
  yield Buffer.from('some ')
  yield Buffer.alloc(200_000)
  throw error
}
