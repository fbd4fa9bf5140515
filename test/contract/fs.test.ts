import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { blobStoreContract } from '../../src/contract/index.js'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'

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

  test('a file is read in the memory of one chunk where the reader allows it', async () => {
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
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})
