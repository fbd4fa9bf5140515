import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import type { S3Server } from './s3-server.js'

/** A client of the test's server with the SDK's defaults, apart from quick retries. */
export function s3ClientOf(server: S3Server, config: S3ClientConfig = {}): S3Client {
  return new S3Client({
    region: 'us-east-1',
    endpoint: server.url,
    forcePathStyle: true,
    credentials: server.credentials,
    maxAttempts: 2,
    ...config,
  })
}
