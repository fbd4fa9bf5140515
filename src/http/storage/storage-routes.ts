import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { uploadKey } from '../../core/engine/job/blob-keys.js'
import { json } from '../routing/answer.js'
import { download } from './download.js'
import { defineRoute } from '../routing/route.js'
import { uploadTicketSchema } from '../schemas.js'
import { resumablePath } from './resumable-routes.js'
import { storageLink } from './storage-link.js'
import { upload } from './upload.js'

export const storageRoutes = [
  defineRoute({
    route: 'GET /upload',
    operation: 'getUploadTicket',
    summary: 'Get an upload ticket',
    answer: { description: 'Where to send the file, and the input URL to use afterwards.', schema: uploadTicketSchema },
    problems: ['STORAGE_FULL'],
    async handle(call) {
      const { engine, options } = call.service
      const { id: app, keyId } = call.caller
      await call.service.storage.refuseFull(app)
      const key = uploadKey(app, randomUUID())
      // A ticket must expire before the marker of its use, which is kept as long as unused uploads.
      const keptSeconds = Math.max(1, Math.floor(engine.options.retention.unusedUploadsMs / 1000))
      const seconds = Math.min(options.links.uploadSeconds, keptSeconds)
      const direct = options.directStorage
        ? await engine.blobs.signPut?.(key, { expiresInSeconds: seconds })
        : undefined
      return json({
        uploadUrl:
          direct ??
          storageLink(call, { method: 'PUT', key, app, keyId, seconds, maxBytes: engine.options.limits.maxFileBytes }),
        downloadUrl: storageLink(call, { method: 'GET', key, app, seconds: options.links.inputSeconds }),
        ...(options.resumableUploads ? { resumableUrl: call.baseUrl + resumablePath } : {}),
      })
    },
  }),
  defineRoute({
    route: 'PUT /storage/**:file',
    operation: 'uploadFile',
    summary: 'Upload a file',
    description:
      'Use the `uploadUrl` of a ticket unchanged. Send the file as the plain body, or in the field `filedata` of a ' +
      'multipart form. Each ticket can be used once.',
    access: 'link',
    // The form comes first: where it is second, TypeScript and Java made by openapi-generator do not compile.
    rawBody: ['multipart/form-data', 'application/octet-stream'],
    answer: {
      description: 'The file is stored.',
      schema: z.object({ bytes: z.number().int().nonnegative() }).meta({ id: 'StoredUpload' }),
    },
    problems: [
      'BAD_INPUT',
      'FORBIDDEN',
      'NOT_FOUND',
      'TIMEOUT',
      'CONFLICT',
      'TOO_LARGE',
      'RATE_LIMITED',
      'STORAGE_FULL',
    ],
    handle: (call, { params }) => upload(call, params.file),
  }),
  defineRoute({
    route: 'GET /storage/**:file',
    operation: 'downloadFile',
    summary: 'Download a file',
    description: 'Use a result link or a `downloadUrl` unchanged. Supports ranges, conditional requests and HEAD.',
    access: 'link',
    answer: { description: 'The file.', contentType: 'application/octet-stream' },
    otherAnswers: {
      206: 'The requested range of the file.',
      304: 'The client already has the current copy.',
    },
    problems: ['FORBIDDEN', 'NOT_FOUND', 'GONE', 'PRECONDITION_FAILED', 'RANGE_NOT_SATISFIABLE', 'RATE_LIMITED'],
    requestHeaders: {
      Range: 'One range of bytes.',
      'If-Range': 'ETag of the file that the range belongs to.',
      'If-None-Match': 'ETag of a copy that you have.',
    },
    handle: (call, { params }) => download(call, params.file),
  }),
]
