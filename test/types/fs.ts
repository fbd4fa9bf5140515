import type { BlobStore } from 'stemwork'
import { fsBlobs } from 'stemwork/fs'
import { expectType } from './expect-type.js'

expectType<BlobStore>()(fsBlobs({ directory: 'data/blobs' }))

// @ts-expect-error: a directory is needed
fsBlobs({ path: 'data/blobs' })
