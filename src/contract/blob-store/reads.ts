import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type BlobStoreContext, keysUnder, listed, read, readKey, sourceOf } from '../blob-samples.js'
import { assertFails, assertNone } from '../broken-promise.js'
import type { Cases } from '../suite.js'

const key = 'results/job-1/1/vocals.wav'

export const blobReadCases = {
  async 'get and stat of a blob that does not exist return undefined, and delete does nothing'({ store }) {
    await store.put('results/job-1/1/vocals.wav', sourceOf('x'))
    for (const absent of [
      'results/job-1/1/vocals',
      'results/job-1/1',
      'results',
      'results/job-2/1/vocals.wav',
      'uploads/app/none',
      'results/job-1/1/vocals.wav.meta',
    ]) {
      assertNone(await store.get(absent), `get finds no blob ${absent}.`)
      assertNone(await store.stat(absent), `stat finds no blob ${absent}.`)
      await store.delete(absent)
    }
    assert.equal(await readKey(store, key), 'x', 'Deleting keys that are not there leaves the others.')
  },

  async 'a range is inclusive at both ends and clipped to the blob'({ store }) {
    await store.put(key, sourceOf('0123', '4567', '89'))
    const expected: [number, number, string][] = [
      [0, 0, '0'],
      [0, 9, '0123456789'],
      [2, 5, '2345'],
      [3, 4, '34'],
      [9, 9, '9'],
      [8, 1000, '89'],
      [10, 20, ''],
      [1000, 2000, ''],
    ]
    for (const [start, end, text] of expected) {
      assert.equal(
        await readKey(store, key, { start, end }),
        text,
        `The range from ${start} to ${end} is inclusive at both ends and ends with the blob.`,
      )
      const found = await store.get(key, { range: { start, end } })
      assert.ok(found, 'The blob is found.')
      await read(found.body)
      assert.equal(found.stat.bytes, 10, 'The stat of a range describes the whole blob.')
    }
    await store.put('uploads/app/empty', sourceOf())
    assert.equal(
      await readKey(store, 'uploads/app/empty', { start: 0, end: 0 }),
      '',
      'A range of an empty blob has no bytes.',
    )
  },

  async 'adjacent ranges of a large blob join to its exact bytes'({ store }) {
    const bytes = randomBytes(1_000_003)
    await store.put(key, sourceOf(bytes))
    const parts = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const found = await store.get(key, { range: { start: n * 100_001, end: (n + 1) * 100_001 - 1 } })
        return found ? read(found.body) : Buffer.alloc(0)
      }),
    )
    assert.ok(Buffer.concat(parts).equals(bytes), 'Ranges that follow each other give the bytes of the blob.')
  },

  async 'simultaneous readers get the same bytes'({ store }) {
    const bytes = randomBytes(200_000)
    await store.put(key, sourceOf(bytes))
    const bodies = await Promise.all(Array.from({ length: 10 }, async () => store.get(key)))
    for (const found of await Promise.all(bodies.map(async (found) => found && read(found.body))))
      assert.ok(found?.equals(bytes), 'Each of ten simultaneous readers gets the bytes of the blob.')
  },

  async 'with reuseMemory a chunk stays intact until the reader requests the next one'({ store }) {
    const bytes = randomBytes(1_000_003)
    await store.put(key, sourceOf(bytes))
    const readOnce = async (at = 0) => {
      for await (const chunk of (await store.get(key, { reuseMemory: true }))?.body ?? []) {
        assert.ok(bytes.subarray(at, (at += chunk.byteLength)).equals(chunk), 'A chunk has the bytes of its place.')
        await new Promise((resolve) => setImmediate(resolve))
        assert.ok(bytes.subarray(at - chunk.byteLength, at).equals(chunk), 'It keeps them until the next request.')
      }
      assert.equal(at, bytes.byteLength, 'The chunks are the whole blob.')
    }
    await Promise.all([readOnce(), readOnce()])
  },

  async 'a reader that overwrites its bytes does not change the blob'({ store }) {
    await store.put(key, sourceOf('untouched'))
    const found = await store.get(key)
    for await (const chunk of found?.body ?? []) chunk.fill(0)
    assert.equal(
      await readKey(store, key),
      'untouched',
      'A reader that overwrites its chunks does not change the blob.',
    )
  },

  async 'if a blob is deleted or replaced during a read, the read returns all of the old bytes or fails'({ store }) {
    const bytes = randomBytes(3_000_000)
    const changes = [
      () => store.delete(key),
      () => store.deletePrefix('results/'),
      () => store.put(key, sourceOf('something else')),
    ]
    for (const change of changes) {
      await store.put(key, sourceOf(bytes))
      const found = await store.get(key)
      assert.ok(found, 'The blob is found.')
      const chunks: Uint8Array[] = []
      try {
        for await (const chunk of found.body) {
          chunks.push(chunk)
          if (chunks.length === 1) await change()
        }
      } catch {
        continue
      }
      assert.ok(
        Buffer.concat(chunks).equals(bytes),
        'A read that does not fail delivers exactly the bytes of the blob that its stat describes.',
      )
    }
  },

  async 'a reader may stop early'({ store }) {
    await store.put(key, sourceOf(randomBytes(2_000_000)))
    for (let n = 0; n < 50; n++) {
      const found = await store.get(key)
      assert.ok(found, 'The blob is found.')
      for await (const chunk of found.body) {
        assert.ok(chunk.byteLength > 0, 'No chunk of a body is empty.')
        break
      }
    }
    await store.delete(key)
    assertNone(await store.stat(key), 'A blob can be deleted after readers that stopped early.')
  },

  async 'an abort makes the read fail'({ store }) {
    await store.put(key, sourceOf(randomBytes(3_000_000)))
    const control = new AbortController()
    const found = await store.get(key, { signal: control.signal })
    assert.ok(found, 'The blob is found.')
    await assertFails(
      async () => {
        for await (const chunk of found.body) if (chunk.byteLength > 0) control.abort(new Error('enough'))
      },
      undefined,
      'An abort ends a read with an error.',
    )
  },

  async 'a deleted blob is gone and its key can be used again'({ store }) {
    await store.put(key, sourceOf('first'))
    await store.delete(key)
    assertNone(await store.get(key), 'get finds no deleted blob.')
    assertNone(await store.stat(key), 'stat finds no deleted blob.')
    assert.deepEqual(await keysUnder(store, 'results/'), [], 'list shows no deleted blob.')
    await store.delete(key)
    await store.put(key, sourceOf('second'))
    assert.equal(await readKey(store, key), 'second', 'A deleted key can be written again.')
  },

  async 'deletePrefix removes exactly the blobs under the prefix and returns their number'({ store }) {
    const inside = ['results/job-1/1/a', 'results/job-1/2/a', 'results/job-1/2/b', 'results/job-1/x']
    const outside = [
      'results/job-10/1/a',
      'results/job-1.bak',
      'results/job/1/a',
      'uploads/job-1/1',
      'results/job-1-/a',
    ]
    for (const each of [...inside, ...outside]) await store.put(each, sourceOf(each))
    assert.equal(
      await store.deletePrefix('results/job-1/'),
      inside.length,
      'deletePrefix counts the blobs that it removes.',
    )
    for (const each of inside) assertNone(await store.stat(each), `deletePrefix removes ${each}.`)
    for (const each of outside)
      assert.equal(
        await readKey(store, each),
        each,
        `deletePrefix leaves ${each}, which does not begin with the prefix.`,
      )
    assert.equal(await store.deletePrefix('results/job-1/'), 0, 'A second deletePrefix finds nothing.')
    assert.equal(
      await store.deletePrefix('results/never/'),
      0,
      'deletePrefix of a folder that never existed removes nothing.',
    )
    await store.put('results/job-1/1/a', sourceOf('again'))
    assert.equal(
      await readKey(store, 'results/job-1/1/a'),
      'again',
      'A key under a deleted prefix can be written again.',
    )
  },

  async 'deletePrefix removes more blobs than one page of a listing holds'({ store }) {
    await Promise.all(Array.from({ length: 120 }, (_, n) => store.put(`results/many/1/${n}`, sourceOf('x'))))
    assert.equal(await store.deletePrefix('results/many/'), 120, 'deletePrefix removes 120 blobs and counts them.')
    assert.deepEqual(await keysUnder(store, 'results/'), [], 'list shows nothing after deletePrefix.')
  },

  async 'a list shows every blob under its prefix once, in key order, with its stat'({ store }) {
    const keys = [
      'a/a',
      'a/a-b',
      'a/a.b',
      'a/aa',
      'a/a0',
      'a/b/c',
      'a/b-c',
      'a/b.c/d',
      'a/b0',
      'a/B',
      'a/_',
      'a/10',
      'a/9',
      'ab/x',
      'a.b',
    ]
    for (const each of keys) await store.put(each, sourceOf(each), { contentType: `text/${each.length}` })
    const stats = await listed(store, 'a/')
    assert.deepEqual(
      stats.map((stat) => stat.key),
      keys.filter((each) => each.startsWith('a/')).sort(),
      'list shows every key under the prefix once, in the order of code units.',
    )
    for (const { key, bytes, etag, modifiedAt } of stats)
      assert.deepEqual(
        { ...(await store.stat(key)), key, bytes, etag, modifiedAt },
        await store.stat(key),
        `An entry of list has the bytes, etag and time that stat gives for ${key}.`,
      )
    assert.deepEqual(await keysUnder(store, 'a/b.c/'), ['a/b.c/d'], 'list shows only keys that begin with the prefix.')
    assert.deepEqual(await keysUnder(store, 'a/never/'), [], 'list of a folder that never existed shows nothing.')
  },

  async 'a listing continues while its blobs are deleted, and may be stopped early'({ store }) {
    const keys = Array.from({ length: 30 }, (_, n) => `uploads/app/${String(n).padStart(3, '0')}`)
    for (const each of keys) await store.put(each, sourceOf('x'))
    const seen: string[] = []
    for await (const stat of store.list('uploads/')) {
      seen.push(stat.key)
      await store.delete(stat.key)
    }
    assert.deepEqual(seen, keys, 'list shows every blob once, although each is deleted when it is seen.')
    await store.put('uploads/app/last', sourceOf('x'))
    for await (const stat of store.list('uploads/')) {
      assert.equal(stat.key, 'uploads/app/last', 'list shows the blob that was put last.')
      break
    }
  },

  async 'cleanUp leaves blobs and writes in progress alone'({ store }) {
    const { modifiedAt } = await store.put(key, sourceOf('kept'))
    let release = () => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    let started = () => {}
    const whenStarted = new Promise<void>((resolve) => (started = resolve))
    const put = store.put(
      'uploads/app/slow',
      (async function* () {
        yield Buffer.from('slow ')
        started()
        await gate
        yield Buffer.from('upload')
      })(),
    )
    await whenStarted
    assert.equal(
      (await store.cleanUp?.(modifiedAt - 60_000)) ?? 0,
      0,
      'cleanUp removes nothing newer than the given time.',
    )
    release()
    await put
    assert.equal(
      await readKey(store, 'uploads/app/slow'),
      'slow upload',
      'A write that was in progress during cleanUp is complete.',
    )
    assert.equal(await readKey(store, key), 'kept', 'cleanUp leaves finished blobs.')
  },
} satisfies Cases<BlobStoreContext>
