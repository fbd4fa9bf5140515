import type { S3Client } from '@aws-sdk/client-s3'

/**
 * The host's client with `requestChecksumCalculation` and `responseChecksumValidation` at `WHEN_REQUIRED`; the client itself is
 * not changed. At its default, `WHEN_SUPPORTED`, the SDK sends headers that R2 and older servers refuse, and puts the CRC32 of
 * an empty body into every signed PUT URL. Bodies are covered by the signature's SHA-256 (and by TLS) in any case.
 */
export function plainClient(client: S3Client): S3Client {
  const whenRequired = async () => 'WHEN_REQUIRED' as const
  const config: S3Client['config'] = {
    ...client.config,
    requestChecksumCalculation: whenRequired,
    responseChecksumValidation: whenRequired,
  }
  return Object.create(client, { config: { value: config } }) as S3Client
}
