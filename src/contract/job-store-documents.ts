import assert from 'node:assert/strict'
import type { JobStoreContext } from './job-store-context.js'
import type { Cases } from './suite.js'

const ttlMs = 60_000

export const documentCases = {
  async 'a document is read as it was written last, and only under its kind and key'({ store: { documents } }) {
    const value = { text: 'Ünï 🎵 \u0000 "x"', list: [1, 2.5, null], deep: { a: {} } }
    assert.equal(await documents.get('k', 'a'), undefined)
    assert.equal(await documents.put({ kind: 'k', key: 'a', value, ttlMs }), 1)
    assert.deepEqual(await documents.get('k', 'a'), { key: 'a', version: 1, value })
    assert.equal(await documents.put({ kind: 'k', key: 'a', value: 2, ttlMs }), 2)
    assert.deepEqual(await documents.get('k', 'a'), { key: 'a', version: 2, value: 2 })
    for (const [kind, key] of [
      ['other', 'a'],
      ['k', 'b'],
    ] as const)
      assert.equal(await documents.get(kind, key), undefined)
    await documents.delete('k', 'a')
    await documents.delete('k', 'a')
    assert.equal(await documents.get('k', 'a'), undefined)
  },

  async 'of simultaneous writes with one version one is made'({ store: { documents } }) {
    for (const version of [0, 1]) {
      const writes = await Promise.all(
        Array.from({ length: 10 }, (_, value) => documents.put({ kind: 'k', key: 'a', value, ttlMs }, { version })),
      )
      const made = writes.flatMap((written, value) => (written === undefined ? [] : [{ written, value }]))
      assert.equal(made.length, 1)
      assert.equal(made[0]?.written, version + 1)
      assert.deepEqual(await documents.get('k', 'a'), { key: 'a', version: version + 1, value: made[0]?.value })
    }
    assert.equal(await documents.put({ kind: 'k', key: 'absent', value: 1, ttlMs }, { version: 1 }), undefined)
    assert.equal(await documents.get('k', 'absent'), undefined)
  },

  async 'documents are listed in the order of their keys, in pages'({ store: { documents } }) {
    const keys = ['', 'B', 'a', 'a/b', 'ä', '🎵'].filter((key) => key !== '')
    for (const key of keys.toReversed()) await documents.put({ kind: 'k', key, value: key, ttlMs })
    await documents.put({ kind: 'other', key: 'x', value: 1, ttlMs })
    const listed = async (options: { limit: number; after?: string }) =>
      (await documents.list('k', options)).map(({ key }) => key)
    assert.deepEqual(await listed({ limit: 100 }), keys)
    assert.deepEqual(await listed({ limit: 2, after: 'a' }), ['a/b', 'ä'])
    assert.deepEqual(await listed({ limit: 0 }), [])
  },

  async 'documents are due from their time on, the earliest first, and gone at their end'({
    store: { documents },
    advance,
  }) {
    await documents.put({ kind: 'k', key: 'late', value: 1, ttlMs, dueInMs: 1000 })
    await documents.put({ kind: 'k', key: 'soon', value: 1, ttlMs, dueInMs: 500 })
    await documents.put({ kind: 'k', key: 'never', value: 1, ttlMs })
    await documents.put({ kind: 'k', key: 'short', value: 1, ttlMs: 1200, dueInMs: 0 })
    const due = async (limit = 10) => (await documents.due('k', limit)).map(({ key }) => key)
    assert.deepEqual(await due(), ['short'])
    await advance(1100)
    assert.deepEqual(await due(), ['short', 'soon', 'late'])
    assert.deepEqual(await due(1), ['short'])
    await advance(200)
    assert.deepEqual(await due(), ['soon', 'late'])
    assert.equal(await documents.get('k', 'short'), undefined)
    assert.deepEqual(
      (await documents.list('k', { limit: 10 })).map(({ key }) => key),
      ['late', 'never', 'soon'],
    )
    assert.equal(await documents.put({ kind: 'k', key: 'short', value: 2, ttlMs: 10 }, { version: 0 }), 1)
    await advance(100)
    assert.equal(await documents.removeExpired(10), 1)
    assert.equal(await documents.removeExpired(10), 0)
    assert.equal(await documents.put({ kind: 'k', key: 'soon', value: 2, ttlMs }), 2)
    assert.deepEqual(await due(), ['late'])
  },
} satisfies Cases<JobStoreContext>
