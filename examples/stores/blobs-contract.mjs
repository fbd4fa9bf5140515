// blobs-contract.mjs: does the store keep the promises of its port? node --test blobs-contract.mjs
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { blobStoreContract } from 'stemwork/contract'
import { folderBlobs } from './blobs.mjs'

blobStoreContract(
  { describe, test },
  {
    // Called once for each case: an empty store, and how to close it.
    async open() {
      const folder = await mkdtemp(join(tmpdir(), 'blobs-'))
      const { blobs, close } = await folderBlobs(folder)
      return { store: blobs, close: () => close().then(() => rm(folder, { recursive: true })) }
    },
  },
)
