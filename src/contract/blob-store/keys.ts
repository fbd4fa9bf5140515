import assert from 'node:assert/strict'
import { type BlobStoreContext, keysUnder, readKey, sourceOf } from '../blob-samples.js'
import { assertFails } from '../broken-promise.js'
import type { Cases } from '../suite.js'

export const blobKeyCases = {
  async 'malformed keys and prefixes are refused by every method'({ store }) {
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
    for (const bad of wrong) {
      const calls = {
        put: () => store.put(bad, sourceOf('x')),
        get: () => store.get(bad),
        stat: () => store.stat(bad),
        delete: () => store.delete(bad),
      }
      for (const [method, call] of Object.entries(calls))
        await assertFails(call, 'INVALID_PARAMS', `${method} refuses ${JSON.stringify(bad)}, which is not a blob key.`)
    }
    for (const bad of ['', '/', 'a', '../', 'a/../', '/a/', 'a//', './', 'a/b', 'a b/']) {
      const calls = { deletePrefix: () => store.deletePrefix(bad), list: () => keysUnder(store, bad) }
      for (const [method, call] of Object.entries(calls))
        await assertFails(
          call,
          'INVALID_PARAMS',
          `${method} refuses ${JSON.stringify(bad)}, which is not a prefix of blob keys.`,
        )
    }
  },

  async 'keys that differ in any allowed character are different blobs'({ store }) {
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
      assert.equal(await readKey(store, each), `content of ${each}`, `The key ${each} has a blob of its own.`)
      assert.equal(
        (await store.stat(each))?.contentType,
        `text/${each.length}`,
        `The blob ${each} has its own content type.`,
      )
    }
    assert.deepEqual(
      await keysUnder(store, 'z/'),
      keys.filter((each) => each.startsWith('z/')).sort(),
      'list shows every allowed key, in the order of code units.',
    )
  },
} satisfies Cases<BlobStoreContext>
