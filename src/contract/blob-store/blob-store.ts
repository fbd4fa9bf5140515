import type { BlobStore } from '../../core/engine/ports/blob-store.js'
import { blobKeyCases } from './keys.js'
import { blobReadCases } from './reads.js'
import { blobWriteCases } from './writes.js'
import { type ContractApi, registerSuite, type Skips } from '../suite.js'

export interface OpenBlobStore {
  store: BlobStore
  /**
   * Bytes of a 50 MB stream that the store may hold at one time. Default: 24 MiB (four parts of a multipart upload).
   */
  maxHeldBytes?: number
  /** Closes the store and removes what it left. */
  close(): Promise<void>
}

const groups = { writing: blobWriteCases, 'reading, listing and removing': blobReadCases, keys: blobKeyCases }

export type BlobStoreCase = keyof typeof blobWriteCases | keyof typeof blobReadCases | keyof typeof blobKeyCases

export interface BlobStoreHarness {
  /** An empty store. Called once for each case. */
  open(): Promise<OpenBlobStore>
  skips?: Skips<BlobStoreCase>
  /** Time limit of each case. Default: 30,000. */
  timeoutMs?: number
}

/**
 * Proves that a store fulfils the `BlobStore` port.
 *
 * @example
 * import { describe, test } from 'vitest'
 * blobStoreContract({ describe, test }, { open: async () => ({ store: myBlobs(), async close() {} }) })
 */
export function blobStoreContract(api: ContractApi, harness: BlobStoreHarness): void {
  registerSuite(api, 'the blob store contract', groups, harness)
}
