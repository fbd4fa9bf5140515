import { S3Client } from '@aws-sdk/client-s3'
import type { BlobStore } from 'stemwork'
import { s3Blobs } from 'stemwork/s3'
import { expectType } from './expect-type.js'

expectType<BlobStore>()(s3Blobs({ client: new S3Client({}), bucket: 'media', prefix: 'stems/' }))

// @ts-expect-error: a client is needed
s3Blobs({ bucket: 'media' })
