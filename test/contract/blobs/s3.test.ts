import { randomUUID } from 'node:crypto'
import { S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { blobStoreContract } from '../../../src/contract/index.js'
import { s3Blobs } from '../../../src/adapters/blobs/s3/index.js'
import { s3ClientOf } from '../../servers/s3-client.js'
import { startS3Server, type S3Server } from '../../servers/s3-server.js'

let server: S3Server
let client: S3Client

beforeAll(async () => {
  server = await startS3Server()
  client = s3ClientOf(server)
})

afterAll(async () => {
  client.destroy()
  await server.close()
})

describe('s3Blobs', () => {
  // A separate prefix gives an empty store, and shows that nothing outside it is read or removed.
  blobStoreContract(
    { describe, test },
    {
      open: async () => ({
        store: s3Blobs({ client, bucket: 'test', prefix: `${randomUUID()}/` }),
        async close() {},
      }),
    },
  )
})

/** For example `http://127.0.0.1:9000`; with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and an existing S3_BUCKET. */
const endpoint = process.env.S3_ENDPOINT

if (endpoint === undefined) test.skip('s3Blobs on another server (skipped: S3_ENDPOINT is not set)', () => {})
else {
  describe(`s3Blobs on ${endpoint}`, () => {
    const other = new S3Client({ region: process.env.AWS_REGION ?? 'us-east-1', endpoint, forcePathStyle: true })
    afterAll(() => other.destroy())
    blobStoreContract(
      { describe, test },
      {
        async open() {
          const folder = `${randomUUID()}/`
          const bucket = process.env.S3_BUCKET ?? 'test'
          return {
            store: s3Blobs({ client: other, bucket, prefix: folder }),
            close: async () => void (await s3Blobs({ client: other, bucket }).deletePrefix(folder)),
          }
        },
      },
    )
  })
}
