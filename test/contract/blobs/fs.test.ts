import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { blobStoreContract } from '../../../src/contract/index.js'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'

describe('fsBlobs', () => {
  blobStoreContract(
    { describe, test },
    {
      async open() {
        const directory = await mkdtemp(join(tmpdir(), 'stemwork-blobs-'))
        return { store: fsBlobs({ directory }), close: () => rm(directory, { recursive: true }) }
      },
    },
  )

  test('a file is read with the memory of one chunk if the reader allows it, and many with that of a few', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'stemwork-blobs-'))
    try {
      const store = fsBlobs({ directory })
      await store.put('results/a/song', Buffer.alloc(1_000_000, 'song'))
      const memories = async (reuseMemory: boolean) => {
        const used = new Set<ArrayBufferLike>()
        for await (const chunk of (await store.get('results/a/song', { reuseMemory }))?.body ?? [])
          used.add(chunk.buffer)
        return used.size
      }
      expect([await memories(true), await memories(false)]).toEqual([1, 8])

      // Holds however many files are read at a time.
      const bodies = await Promise.all(
        Array.from({ length: 300 }, async () => (await store.get('results/a/song', { reuseMemory: true }))!.body),
      )
      const readers = bodies.map((body) => body[Symbol.asyncIterator]())
      const held = async () => {
        const chunks = await Promise.all(readers.map((reader) => reader.next()))
        return chunks.reduce((sum, { value }) => sum + (value as Uint8Array).buffer.byteLength, 0)
      }
      await held()
      expect(await held()).toBeLessThanOrEqual(8 * 1024 ** 2)
      for (const reader of readers) await reader.return?.()
      expect(await memories(true)).toBe(1)
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})
