import { scriptFile } from '../../core/engine/package-files.js'
import { hasPackage, requirePackage } from '../../core/engine/errors.js'
import type { ApiAnswer } from '../routing/answer.js'
import type { KeyedCall } from '../routing/call.js'
import type { ProblemCode } from '../routing/problem.js'
import { defineRoute } from '../routing/route.js'

/** Path below the base path for starting uploads; each continues at its own path below this one. */
export const resumablePath = '/upload/resumable'

type ResumableUpload = typeof import('./resumable-upload.js')

const library = '@tus/server'
const protocolHeaders = {
  'Tus-Resumable': {
    description: 'Version of the protocol.',
    schema: { type: 'string', enum: ['1.0.0'] },
    required: true,
  },
} as const
const offsetHeader = { 'Upload-Offset': 'Bytes stored so far.' }
const downloadHeader = { 'Download-Url': 'What a job takes as its input once the file is complete.' }
const wholeNumber = { type: 'string', pattern: '^(0|[1-9][0-9]{0,14})$' }
const problems: readonly ProblemCode[] = ['BAD_INPUT', 'NOT_FOUND', 'CONFLICT', 'GONE', 'PRECONDITION_FAILED']
const shared = {
  optionsHeaders: {
    'tus-resumable': '1.0.0',
    'tus-version': '1.0.0',
    'tus-extension': 'creation,creation-with-upload,termination,expiration',
  },
} as const

/** Uploads that resume after a broken connection, by the protocol tus 1.0. */
export const resumableRoutes = [
  defineRoute({
    ...shared,
    route: 'POST /upload/resumable',
    operation: 'createResumableUpload',
    summary: 'Start a resumable upload',
    description:
      'tus 1.0 (https://tus.io) with the extensions creation, creation-with-upload, termination and expiration.',
    requestHeaders: {
      ...protocolHeaders,
      'Upload-Length': { description: 'Bytes of the whole file.', schema: wholeNumber, required: true },
    },
    rawBody: ['application/offset+octet-stream'],
    isBodyOptional: true,
    answer: {
      description: 'The upload was started.',
      status: 201,
      headers: { Location: 'Where to send the file with PATCH.', ...downloadHeader },
    },
    problems: [...problems, 'TOO_LARGE', 'RATE_LIMITED', 'STORAGE_FULL'],
    handle: (call) => answer(call, undefined),
  }),
  defineRoute({
    ...shared,
    route: 'GET /upload/resumable/:id',
    operation: 'getResumableUpload',
    summary: 'Get the progress of an upload',
    description: 'The protocol uses HEAD; the answer is in the headers.',
    requestHeaders: protocolHeaders,
    answer: {
      description: 'The number of bytes stored so far.',
      status: 200,
      headers: { ...offsetHeader, 'Upload-Length': 'Bytes of the whole file.', ...downloadHeader },
    },
    problems,
    handle: (call, { params }) => answer(call, params.id),
  }),
  defineRoute({
    ...shared,
    route: 'PATCH /upload/resumable/:id',
    operation: 'continueResumableUpload',
    summary: 'Send the next bytes of an upload',
    description:
      'After an interruption, ask for the offset and send the rest. With the last byte, the file is complete.',
    requestHeaders: {
      ...protocolHeaders,
      'Upload-Offset': {
        description: 'Where the bytes belong: the offset that is stored.',
        schema: wholeNumber,
        required: true,
      },
    },
    rawBody: ['application/offset+octet-stream'],
    answer: { description: 'The bytes are stored.', status: 204, headers: offsetHeader },
    problems: [...problems, 'TOO_LARGE', 'RATE_LIMITED', 'STORAGE_FULL'],
    handle: (call, { params }) => answer(call, params.id),
  }),
  defineRoute({
    ...shared,
    route: 'DELETE /upload/resumable/:id',
    operation: 'deleteResumableUpload',
    summary: 'Abort an incomplete upload',
    requestHeaders: protocolHeaders,
    answer: { description: 'The stored bytes are removed.', status: 204 },
    problems,
    handle: (call, { params }) => answer(call, params.id),
  }),
]

async function answer(call: KeyedCall, id: string | undefined): Promise<ApiAnswer> {
  // At an address that bundlers cannot follow: the file needs the library, which most hosts have not installed.
  const file = scriptFile('http/storage/resumable-upload.js').href
  const { answerTus } = (await import(/* webpackIgnore: true */ /* @vite-ignore */ file)) as ResumableUpload
  return answerTus(call, resumablePath, id)
}

export const requireTus = () => requirePackage('resumableUploads', library)
export const hasTus = () => hasPackage(library)
