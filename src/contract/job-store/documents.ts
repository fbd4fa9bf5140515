import assert from 'node:assert/strict'
import { assertNone } from '../broken-promise.js'
import { together } from '../job-samples.js'
import type { JobStoreContext } from '../job-store-context.js'
import type { Cases } from '../suite.js'

const ttlMs = 60_000

export const documentCases = {
  async 'a document is read as it was last written, and only under its kind and key'({ store: { documents } }) {
    const value = { text: 'Ünï 🎵 \u0000 "x"', list: [1, 2.5, null], deep: { a: {} } }
    assertNone(await documents.get('k', 'a'), 'A document that was never written is undefined.')
    assert.equal(await documents.put({ kind: 'k', key: 'a', value, ttlMs }), 1, 'The first write creates version 1.')
    assert.deepEqual(
      await documents.get('k', 'a'),
      { key: 'a', version: 1, value },
      'A document is read back as it was written.',
    )
    assert.equal(await documents.put({ kind: 'k', key: 'a', value: 2, ttlMs }), 2, 'The second creates version 2.')
    assert.deepEqual(
      await documents.get('k', 'a'),
      { key: 'a', version: 2, value: 2 },
      'A second write replaces the whole value.',
    )
    for (const [kind, key] of [
      ['other', 'a'],
      ['k', 'b'],
    ] as const)
      assertNone(await documents.get(kind, key), `There is no document ${key} of the kind ${kind}.`)
    await documents.delete('k', 'a')
    await documents.delete('k', 'a')
    assertNone(await documents.get('k', 'a'), 'A deleted document is gone, and deleting it again does not fail.')
  },

  async 'only one of several simultaneous writes with the same version succeeds'({ store: { documents } }) {
    for (const version of [0, 1]) {
      const writes = await together(10, (value) => documents.put({ kind: 'k', key: 'a', value, ttlMs }, { version }))
      const made = writes.flatMap((written, value) => (written === undefined ? [] : [{ written, value }]))
      assert.equal(made.length, 1, `Of ten simultaneous writes with version ${version} exactly one succeeds.`)
      assert.equal(made[0]?.written, version + 1, 'A write creates the version that follows the one it was based on.')
      assert.deepEqual(
        await documents.get('k', 'a'),
        { key: 'a', version: version + 1, value: made[0]?.value },
        'The document has the value of the write that succeeded.',
      )
    }
    assertNone(
      await documents.put({ kind: 'k', key: 'absent', value: 1, ttlMs }, { version: 1 }),
      'A write with a version that the document does not have is refused.',
    )
    assertNone(await documents.get('k', 'absent'), 'A refused write changes nothing.')
  },

  async 'documents are listed in the order of their keys, in pages'({ store: { documents } }) {
    const keys = ['', 'B', 'a', 'a/b', 'ä', '🎵'].filter((key) => key !== '')
    for (const key of keys.toReversed()) await documents.put({ kind: 'k', key, value: key, ttlMs })
    await documents.put({ kind: 'other', key: 'x', value: 1, ttlMs })
    const listed = async (options: { limit: number; after?: string }) =>
      (await documents.list('k', options)).map(({ key }) => key)
    assert.deepEqual(await listed({ limit: 100 }), keys, 'Documents are listed by the UTF-8 bytes of their keys.')
    assert.deepEqual(
      await listed({ limit: 2, after: 'a' }),
      ['a/b', 'ä'],
      'A page begins after the key `after` and has at most `limit` documents.',
    )
    assert.deepEqual(await listed({ limit: 0 }), [], 'A limit of 0 lists nothing.')
  },

  async 'documents are due from their due time, earliest first, and disappear when they expire'({
    store: { documents },
    advance,
  }) {
    await documents.put({ kind: 'k', key: 'late', value: 1, ttlMs, dueInMs: 1000 })
    await documents.put({ kind: 'k', key: 'soon', value: 1, ttlMs, dueInMs: 500 })
    await documents.put({ kind: 'k', key: 'never', value: 1, ttlMs })
    await documents.put({ kind: 'k', key: 'short', value: 1, ttlMs: 1200, dueInMs: 0 })
    const due = async (limit = 10) => (await documents.due('k', limit)).map(({ key }) => key)
    assert.deepEqual(await due(), ['short'], 'Only documents whose time has come are due.')
    await advance(1100)
    assert.deepEqual(
      await due(),
      ['short', 'soon', 'late'],
      'Due documents come in the order of their times, the earliest first.',
    )
    assert.deepEqual(await due(1), ['short'], 'due returns at most its limit.')
    await advance(200)
    assert.deepEqual(await due(), ['soon', 'late'], 'An expired document is not due.')
    assertNone(await documents.get('k', 'short'), 'An expired document is not found.')
    assert.deepEqual(
      (await documents.list('k', { limit: 10 })).map(({ key }) => key),
      ['late', 'never', 'soon'],
      'An expired document is not listed.',
    )
    assert.equal(
      await documents.put({ kind: 'k', key: 'short', value: 2, ttlMs: 10 }, { version: 0 }),
      1,
      'An expired document does not exist: it can be written with version 0, and begins with version 1.',
    )
    await advance(100)
    assert.equal(await documents.removeExpired(10), 1, 'removeExpired removes and counts the expired documents.')
    assert.equal(await documents.removeExpired(10), 0, 'A second removeExpired finds nothing.')
    assert.equal(
      await documents.put({ kind: 'k', key: 'soon', value: 2, ttlMs }),
      2,
      'A write without a due time creates the next version.',
    )
    assert.deepEqual(await due(), ['late'], 'A write without a due time removes the old one.')
  },
} satisfies Cases<JobStoreContext>
