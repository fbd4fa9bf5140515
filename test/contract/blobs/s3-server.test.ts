import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { s3ClientOf } from '../../servers/s3-client.js'
import { type S3Server, startS3Server } from '../../servers/s3-server.js'

const Bucket = 'test'
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

async function body(Key: string): Promise<string | undefined> {
  return (await client.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString()
}

describe('the S3 server of the tests', () => {
  test('stores streams that the SDK sends in chunks with a checksum in the trailer, byte for byte', async () => {
    const bytes = Buffer.alloc(140_000, 'stream')
    await client.send(
      new PutObjectCommand({
        Bucket,
        Key: 'streamed',
        Body: Readable.from([bytes.subarray(0, 70_001), bytes.subarray(70_001)]),
        ContentLength: bytes.byteLength,
      }),
    )
    expect(server.requests.at(-1)?.headers['x-amz-trailer']).toBe('x-amz-checksum-crc32')
    expect(await body('streamed')).toBe(bytes.toString())
  })

  test('accepts any key and returns it', async () => {
    for (const Key of ['a b', 'ä/ö 🎵', 'a+b&c=d', '<x>&"\'', "it's (a) *key*!", '%2F%20', 'a//b']) {
      await client.send(new PutObjectCommand({ Bucket, Key: `keys/${Key}`, Body: Key }))
      expect(await body(`keys/${Key}`)).toBe(Key)
      const { Contents } = await client.send(new ListObjectsV2Command({ Bucket, Prefix: `keys/${Key}` }))
      expect(Contents?.map((object) => object.Key)).toEqual([`keys/${Key}`])
    }
  })

  test('refuses requests that are unsigned, altered, expired, or signed with another secret', async () => {
    await client.send(new PutObjectCommand({ Bucket, Key: 'secret', Body: 'x' }))
    const url = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: 'secret' }), { expiresIn: 60 })
    const past = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: 'secret' }), {
      expiresIn: 60,
      signingDate: new Date(Date.now() - 120_000),
    })
    const statuses = [
      url,
      `${server.url}/${Bucket}/secret`,
      `${url}&versionId=1`,
      url.replace('X-Amz-Expires=60', 'X-Amz-Expires=61'),
      past,
    ].map(async (each) => (await fetch(each)).status)
    expect(await Promise.all(statuses)).toEqual([200, 403, 403, 403, 403])
    const stranger = s3ClientOf({ ...server, credentials: { ...server.credentials, secretAccessKey: 'guess' } })
    await expect(stranger.send(new GetObjectCommand({ Bucket, Key: 'secret' }))).rejects.toMatchObject({
      name: 'SignatureDoesNotMatch',
    })
    stranger.destroy()
  })

  test('refuses bodies that are not what their headers say', async () => {
    const put = (fields: object) =>
      client.send(new PutObjectCommand({ Bucket, Key: 'digest', Body: 'body', ...fields }))
    await expect(put({ ContentMD5: createHash('md5').update('other').digest('base64') })).rejects.toMatchObject({
      name: 'BadDigest',
    })
    await expect(put({ ChecksumCRC32: 'AAAAAA==' })).rejects.toMatchObject({ name: 'BadDigest' })
    // The checksum of an empty body, which the SDK's default puts into a signed PUT.
    const url = await getSignedUrl(client, new PutObjectCommand({ Bucket, Key: 'digest' }))
    expect(url).toContain('x-amz-checksum-crc32=AAAAAA')
    expect((await fetch(url, { method: 'PUT', body: 'body' })).status).toBe(400)
    expect(server.bucket(Bucket).keys('digest')).toEqual([])
  })

  test('keeps conditions on writes', async () => {
    const put = (fields: object) =>
      client.send(new PutObjectCommand({ Bucket, Key: 'condition', Body: 'x', ...fields }))
    const { ETag } = await put({ IfNoneMatch: '*' })
    await expect(put({ IfNoneMatch: '*' })).rejects.toMatchObject({ name: 'PreconditionFailed' })
    await expect(put({ IfMatch: '"other"' })).rejects.toMatchObject({ name: 'PreconditionFailed' })
    await put({ IfMatch: ETag })
  })

  test('checks the parts of an upload, and makes nothing of an aborted one', async () => {
    const begin = async () => ({
      Bucket,
      Key: 'parts',
      UploadId: (await client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'parts' }))).UploadId,
    })
    const upload = await begin()
    const part = async (PartNumber: number, bytes: number) => ({
      PartNumber,
      ETag: (await client.send(new UploadPartCommand({ ...upload, PartNumber, Body: Buffer.alloc(bytes) }))).ETag,
    })
    const [small, large, last] = [await part(1, 1000), await part(2, 5 * 1024 * 1024), await part(3, 1)]
    const complete = (Parts: object[]) =>
      client.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }))
    await expect(complete([small, large])).rejects.toMatchObject({ name: 'EntityTooSmall' })
    await expect(complete([last, large])).rejects.toMatchObject({ name: 'InvalidPartOrder' })
    await expect(complete([{ ...large, ETag: '"other"' }])).rejects.toMatchObject({ name: 'InvalidPart' })
    expect((await complete([large, last])).ETag).toMatch(/^"[0-9a-f]{32}-2"$/)
    const aborted = await begin()
    expect((await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads).toHaveLength(1)
    await client.send(new AbortMultipartUploadCommand(aborted))
    await expect(client.send(new UploadPartCommand({ ...aborted, PartNumber: 1, Body: 'x' }))).rejects.toMatchObject({
      name: 'NoSuchUpload',
    })
  })
})
