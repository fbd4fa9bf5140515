import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { StemworkError } from '../core/engine/errors.js'
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
} from './blob-samples.js'
import type { Cases } from './suite.js'

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
    assert.deepEqual([put.key, put.bytes, put.contentType], [key, bytes.byteLength, 'audio/wav'])
    assert.ok(put.etag.length > 0 && !put.etag.includes('"'))
    // A remote store has a clock of its own, perhaps of whole seconds.
    assert.ok(Math.abs(put.modifiedAt - before) < 120_000, `modified at ${put.modifiedAt}, written at ${before}`)
    const found = await store.get(key)
    assert.ok(found)
    assert.deepEqual(found.stat, put)
    assert.ok((await read(found.body)).equals(bytes))
    assert.deepEqual(await store.stat(key), put)
  },

  async 'an empty blob is a blob'({ store }) {
    for (const [name, source] of [
      ['none', sourceOf()],
      ['empty', sourceOf('')],
    ] as const) {
      const put = await store.put(`uploads/app/${name}`, source)
      assert.equal(put.bytes, 0)
      assert.equal(await readKey(store, `uploads/app/${name}`), '')
      assert.deepEqual(await store.stat(`uploads/app/${name}`), put)
    }
  },

  async 'the content type is kept, and is octets if none is given'({ store }) {
    assert.equal((await store.put(key, sourceOf('a'))).contentType, 'application/octet-stream')
    const contentType = 'text/plain; charset="utf-8"'
    assert.equal((await store.put(key, sourceOf('a'), { contentType })).contentType, contentType)
    assert.equal((await store.stat(key))?.contentType, contentType)
  },

  async 'a text and a buffer are stored as their bytes, as a stream is'({ store }) {
    const text = 'caf\u00e9'
    assert.equal((await store.put('texts/1', text)).bytes, 5)
    assert.equal((await store.put('texts/2', Buffer.from(text))).bytes, 5)
    assert.equal((await store.put('texts/3', '')).bytes, 0)
    for (const [name, stored] of Object.entries({ 'texts/1': text, 'texts/2': text, 'texts/3': '' }))
      assert.equal(await readKey(store, name), Buffer.from(stored).toString('latin1'))
    const numbers = (async function* () {
      yield 1
    })() as unknown as AsyncIterable<Uint8Array>
    await assert.rejects(store.put('texts/4', numbers))
    assert.equal(await store.stat('texts/4'), undefined)
  },

  async 'a put replaces the blob and changes the etag, also for equal sizes'({ store }) {
    const first = await store.put(key, sourceOf('one'), { contentType: 'text/plain' })
    const second = await store.put(key, sourceOf('two'), { contentType: 'audio/wav' })
    assert.notEqual(first.etag, second.etag)
    assert.equal(await readKey(store, key), 'two')
    assert.deepEqual(await store.stat(key), second)
    assert.deepEqual(await keysUnder(store, 'results/'), [key])
  },

  async 'ifAbsent makes a new blob and leaves an existing one untouched'({ store }) {
    const first = await store.put(key, sourceOf('first'), { ifAbsent: true })
    await assert.rejects(store.put(key, sourceOf('second'), { ifAbsent: true }), hasCode('ALREADY_EXISTS'))
    assert.equal(await readKey(store, key), 'first')
    assert.deepEqual(await store.stat(key), first)
    assert.equal((await store.cleanUp?.(0)) ?? 0, 0)
    await store.delete(key)
    assert.ok(await store.put(key, sourceOf('third'), { ifAbsent: true }))
  },

  async 'of writers that race with ifAbsent one wins, and its bytes stay'({ store }) {
    for (let round = 0; round < 5; round++) {
      const place = `uploads/app/ticket-${round}`
      const outcomes = await Promise.allSettled(
        Array.from({ length: 6 }, (_, n) => store.put(place, sourceOf(`writer ${n}`, `, ${n}`), { ifAbsent: true })),
      )
      const winners = outcomes.flatMap((outcome, n) => (outcome.status === 'fulfilled' ? [n] : []))
      assert.equal(winners.length, 1)
      assert.equal(await readKey(store, place), `writer ${winners[0]}, ${winners[0]}`)
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') assert.ok(hasCode('ALREADY_EXISTS')(outcome.reason), String(outcome.reason))
    }
  },

  async 'writers that race without ifAbsent leave one of their blobs whole'({ store }) {
    const bodies = Array.from({ length: 5 }, (_, n) => String(n).repeat(100_000 + n))
    await Promise.all(bodies.map((body) => store.put(key, sourceOf(body.slice(0, 50_000), body.slice(50_000)))))
    const stored = await readKey(store, key)
    assert.ok(stored !== undefined && bodies.includes(stored))
    assert.equal((await store.stat(key))?.bytes, stored.length)
  },

  async 'a blob is not seen before its last byte is stored'({ store }) {
    const source = new ManualSource()
    const put = store.put(key, source)
    await source.give('half')
    assert.equal(await store.get(key), undefined)
    assert.equal(await store.stat(key), undefined)
    assert.deepEqual(await keysUnder(store, 'results/'), [])
    await source.give(' and half')
    await source.end()
    await put
    assert.equal(await readKey(store, key), 'half and half')
  },

  async 'a source that throws leaves nothing, and its error is passed on'({ store }) {
    const broken = new Error('the connection was lost')
    await assert.rejects(store.put(key, failing(broken)), (error) => error === broken)
    await assertNothingUnder(store, key)
  },

  async 'a source that throws at once leaves nothing'({ store }) {
    const broken = new Error('refused')
    const source = {
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(broken) }),
    }
    await assert.rejects(store.put(key, source), (error) => error === broken)
    await assertNothingUnder(store, key)
  },

  async 'a source that throws keeps the old blob'({ store }) {
    const old = await store.put(key, sourceOf('old'))
    await assert.rejects(store.put(key, failing(new Error('lost'))))
    assert.equal(await readKey(store, key), 'old')
    assert.deepEqual(await store.stat(key), old)
    assert.equal((await store.cleanUp?.(0)) ?? 0, 0)
  },

  async 'an abort ends the put with its reason, at once and also while the source is silent, and leaves nothing'({
    store,
  }) {
    const reason = new Error('the client went away')
    const control = new AbortController()
    const source = new ManualSource()
    const put = store.put(key, source, { signal: control.signal })
    await source.give('half')
    control.abort(reason)
    await assert.rejects(put, (error) => error === reason)
    await assertNothingUnder(store, key)
  },

  async 'an abort ends the source'({ store }) {
    const control = new AbortController()
    let ended = () => {}
    const whenEnded = new Promise<void>((resolve) => (ended = resolve))
    const source = (async function* () {
      try {
        for (let n = 0; ; n++) {
          if (n === 3) control.abort(new Error('stop'))
          yield Buffer.from('chunk')
        }
      } finally {
        ended()
      }
    })()
    await assert.rejects(store.put(key, source, { signal: control.signal }), /stop/)
    await whenEnded
    await assertNothingUnder(store, key)
  },

  async 'a put whose signal fired before stores nothing'({ store }) {
    const old = await store.put(key, sourceOf('old'))
    const reason = new Error('too late')
    await assert.rejects(
      store.put(key, sourceOf('new'), { signal: AbortSignal.abort(reason) }),
      (error) => error === reason,
    )
    assert.deepEqual(await store.stat(key), old)
    assert.equal((await store.cleanUp?.(0)) ?? 0, 0)
  },

  async '50 MB are written and read without holding them'({ store, maxHeldBytes = 24 * 1024 * 1024 }) {
    // The source's own buffers are made with its first block.
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
    assert.equal(put.bytes, longBytes)
    assert.ok(held.peak <= maxHeldBytes, `the put held ${held.peak} bytes; ${maxHeldBytes} are allowed`)
    const found = await store.get(key)
    assert.ok(found)
    const reading = new HeldBytes()
    assert.equal(await countLongBody(found.body, reading.block), longBytes)
    assert.ok(reading.peak <= maxHeldBytes, `the get held ${reading.peak} bytes; ${maxHeldBytes} are allowed`)
  },

  async 'an unfinished write under a deleted prefix fails and never appears'({ store }) {
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
    assert.ok(StemworkError.is(error) && error.code === 'STORE_UNAVAILABLE', `the write ended with ${String(error)}`)
    await assertNothingUnder(store, key)
  },

  async 'keys and prefixes of another form are refused everywhere'({ store }) {
    const wrong = [
      '',
      '/',
      '/a',
      'a/',
      'a//b',
      '.',
      '..',
      '../a',
      'a/../b',
      'a/./b',
      'a/..',
      'a\\b',
      'a b',
      'ä',
      'a\0',
      'a\n',
      'a:b',
      'a%2e',
      'a?b',
      '~a',
      'C:/a',
      'x'.repeat(201),
      `${'a/'.repeat(500)}a`,
    ]
    const refused = hasCode('INVALID_PARAMS')
    for (const bad of wrong) {
      await assert.rejects(store.put(bad, sourceOf('x')), refused, `put ${JSON.stringify(bad)}`)
      await assert.rejects(store.get(bad), refused, `get ${JSON.stringify(bad)}`)
      await assert.rejects(store.stat(bad), refused, `stat ${JSON.stringify(bad)}`)
      await assert.rejects(store.delete(bad), refused, `delete ${JSON.stringify(bad)}`)
    }
    for (const bad of ['', '/', 'a', '../', 'a/../', '/a/', 'a//', './', 'a/b', 'a b/']) {
      await assert.rejects(store.deletePrefix(bad), refused, `deletePrefix ${JSON.stringify(bad)}`)
      await assert.rejects(keysUnder(store, bad), refused, `list ${JSON.stringify(bad)}`)
    }
  },

  async 'every allowed character makes its own key'({ store }) {
    const keys = [
      'a',
      'A1/b',
      'z/.hidden',
      'z/a.b.c',
      'z/...',
      'z/-',
      'z/_',
      'z/a-b',
      'z/a.',
      'z/.a',
      `z/${'x'.repeat(200)}`,
      'y/0123456789',
      'index.html/index.html',
      'y/tmp',
      'y/meta.json',
      'y/a.part',
      'deep/1/2/3/4/5/6/7/8/9/10',
    ]
    for (const each of keys)
      await store.put(each, sourceOf(`content of ${each}`), { contentType: `text/${each.length}` })
    for (const each of keys) {
      assert.equal(await readKey(store, each), `content of ${each}`)
      assert.equal((await store.stat(each))?.contentType, `text/${each.length}`)
    }
    assert.deepEqual(await keysUnder(store, 'z/'), keys.filter((each) => each.startsWith('z/')).sort())
  },
} satisfies Cases<BlobStoreContext>

function hasCode(code: string): (error: unknown) => boolean {
  return (error) => StemworkError.is(error) && error.code === code
}

async function* failing(error: Error): AsyncGenerator<Uint8Array, void, void> {
  yield Buffer.from('some ')
  yield Buffer.alloc(200_000)
  throw error
}
