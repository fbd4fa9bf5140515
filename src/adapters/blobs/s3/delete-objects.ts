import { DeleteObjectCommand, DeleteObjectsCommand, type S3Client } from '@aws-sdk/client-s3'
import { failureOf } from './s3-failure.js'

/** Removes up to 1,000 objects in one request. @throws also if only some of them could not be deleted. */
export async function deleteObjects(
  send: S3Client['send'],
  bucket: string,
  objectKeys: readonly string[],
): Promise<void> {
  const Objects = objectKeys.map((Key) => ({ Key }))
  try {
    const { Errors = [] } = await send(new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } }))
    const [first] = Errors
    if (first)
      throw new Error(
        `${Errors.length} of ${objectKeys.length} objects were not deleted, the first because of ${first.Code}: ` +
          `${first.Message}`,
      )
  } catch (error) {
    // Google's and older servers lack this request, or require an MD5 that the SDK no longer sends.
    if (![400, 405, 501].includes(failureOf(error).status ?? 0)) throw error
    for (const { Key } of Objects) await send(new DeleteObjectCommand({ Bucket: bucket, Key }))
  }
}
