import { ErrorNotice } from './error-notice.js'
import type { Upload, Uploads } from './uploads.js'
import { sizeWords } from './words.js'

/** A song on its way to the service: the same row that it has afterwards as a job. */
export function UploadRow({ upload, uploads }: { upload: Upload; uploads: Uploads }) {
  const { number, file, state, progress, problem } = upload
  const isOver = state === 'failed' || state === 'refused'
  const again = state === 'refused' ? 'Send anyway' : 'Send again'
  return (
    <li class="upload">
      <div class="row">
        <a class="name" dir="auto" href={`#/job/${number}`} title={file.name}>
          {file.name}
        </a>
        <span class="quiet">{sizeWords(file.size)}</span>
      </div>
      <div class="state">
        <span class={`status ${state}`}>{uploadStateWords(upload)}</span>
        {!isOver && (
          <progress aria-label={`Upload of ${file.name}`} {...(state === 'sending' ? { value: progress } : {})} />
        )}
      </div>
      <span class="actions">
        {isOver && (
          <button
            type="button"
            class="plain"
            aria-label={`${again}: ${file.name}`}
            onClick={() => uploads.retry(number)}
          >
            {again}
          </button>
        )}
        <button
          type="button"
          class="plain"
          aria-label={`${isOver ? 'Dismiss' : 'Stop'} ${file.name}`}
          onClick={() => uploads.remove(number)}
        >
          {isOver ? 'Dismiss' : 'Stop'}
        </button>
      </span>
      {problem && <ErrorNotice problem={problem} />}
    </li>
  )
}

export function uploadStateWords({ state, progress }: Upload): string {
  switch (state) {
    case 'waiting':
      return 'Waiting to upload'
    case 'sending':
      return progress < 1 ? `Uploading ${Math.floor(progress * 100)} %` : 'Uploaded'
    case 'disconnected':
      return 'Connection lost. Trying again.'
    case 'refused':
    case 'failed':
      return 'Not sent'
    default:
      return state satisfies never
  }
}
