import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'vitest'
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
})
