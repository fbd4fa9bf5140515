import type { Bucket, MultipartUpload } from './bucket.js'
import { S3Error } from './s3-error.js'
import { element, elements, type XmlText } from './xml.js'

const maxRows = 1000

/** ListObjectsV2 without a delimiter. */
export function listObjects(name: string, bucket: Bucket, query: URLSearchParams): XmlText {
  const prefix = query.get('prefix') ?? ''
  const token = query.get('continuation-token')
  const after = token === null ? query.get('start-after') : Buffer.from(token, 'base64url').toString()
  const keys = bucket.keys(prefix)
  const start = after === null ? 0 : keys.findIndex((key) => Buffer.compare(Buffer.from(key), Buffer.from(after)) > 0)
  const left = start < 0 ? [] : keys.slice(start)
  const page = left.slice(0, rowsWanted(query.get('max-keys')))
  const isTruncated = left.length > page.length
  const contents = page.map((key) => {
    const object = bucket.get(key)
    return element(
      'Contents',
      elements(
        element('Key', key),
        element('LastModified', object.modifiedAt.toISOString()),
        element('ETag', object.etag),
        element('Size', object.bytes),
        element('StorageClass', 'STANDARD'),
      ),
    )
  })
  return element(
    'ListBucketResult',
    elements(
      element('Name', name),
      element('Prefix', prefix),
      element('KeyCount', page.length),
      element('IsTruncated', isTruncated),
      isTruncated ? [element('NextContinuationToken', Buffer.from(page[page.length - 1]!).toString('base64url'))] : [],
      contents,
    ),
  )
}

/** Uploads sorted by key, then by id. */
export function listMultipartUploads(name: string, bucket: Bucket, query: URLSearchParams): XmlText {
  const prefix = query.get('prefix') ?? ''
  const keyMarker = query.get('key-marker') ?? ''
  const idMarker = query.get('upload-id-marker')
  const uploads = [...bucket.uploads.values()]
    .filter(
      ({ key, id }) =>
        key.startsWith(prefix) && (key > keyMarker || (key === keyMarker && idMarker !== null && id > idMarker)),
    )
    .sort((a, b) => (a.key === b.key ? (a.id < b.id ? -1 : 1) : a.key < b.key ? -1 : 1))
  const page = uploads.slice(0, rowsWanted(query.get('max-uploads')))
  const isTruncated = uploads.length > page.length
  const last = page[page.length - 1]
  return element(
    'ListMultipartUploadsResult',
    elements(
      element('Bucket', name),
      element('IsTruncated', isTruncated),
      isTruncated ? [element('NextKeyMarker', last!.key), element('NextUploadIdMarker', last!.id)] : [],
      page.map(({ key, id, initiatedAt }) =>
        element(
          'Upload',
          elements(element('Key', key), element('UploadId', id), element('Initiated', initiatedAt.toISOString())),
        ),
      ),
    ),
  )
}

export function listParts(upload: MultipartUpload): XmlText {
  return element(
    'ListPartsResult',
    elements(
      element('IsTruncated', false),
      [...upload.parts].map(([number, { storedAt }]) =>
        element(
          'Part',
          elements(element('PartNumber', String(number)), element('LastModified', storedAt.toISOString())),
        ),
      ),
    ),
  )
}

function rowsWanted(text: string | null): number {
  const rows = Number(text ?? maxRows)
  if (!(rows >= 0)) throw new S3Error(400, 'InvalidArgument')
  return Math.min(rows, maxRows)
}
