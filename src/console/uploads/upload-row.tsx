import { useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import type { WorkflowSummary } from '../../client/client.js'
import type { Choices } from '../options/choices.js'
import { ErrorNotice } from '../elements/error-notice.js'
import { useMessages } from '../elements/messages.js'
import { OptionFields } from '../options/option-fields.js'
import type { Client } from '../service/page-client.js'
import type { Upload } from './upload.js'
import type { Uploads } from './upload-queue.js'
import { sizeWords } from '../words/words.js'
import { isCorrected, WorkflowChoice } from '../options/workflow-choice.js'

interface UploadListProps {
  client: Client
  workflows: readonly WorkflowSummary[]
  uploads: Uploads
}

/** Songs on their way to the service, newest first, as in the list of jobs. */
export function UploadList(props: UploadListProps) {
  const { uploads } = props
  const held = uploads.list.filter((upload) => upload.isHeld && !isOver(upload))
  return (
    <>
      <ul class="rows songs" aria-label="Uploads">
        {uploads.list.toReversed().map((upload) => (
          <UploadRow key={upload.number} {...props} upload={upload} />
        ))}
      </ul>
      {held.length > 1 && (
        <p class="line bulk">
          <span class="quiet">{held.length} songs are ready to send</span>
          <Button
            class="main"
            onClick={({ currentTarget }) => {
              if (isCorrected(currentTarget.closest('section')))
                uploads.with((queue) => held.forEach(({ number }) => queue.release(number)))
            }}
          >
            Send all
          </Button>
        </p>
      )}
    </>
  )
}

interface UploadRowProps extends UploadListProps {
  upload: Upload
}

/** The same row as the song will have as a job. */
function UploadRow(props: UploadRowProps) {
  const [isOpened, setOpened] = useState(false)
  const { upload, uploads } = props
  const { number, file, state, progress, problem, isAgain } = upload
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
        {!isOver(upload) && (
          <progress aria-label={`Upload of ${file.name}`} {...(state === 'sending' ? { value: progress } : {})} />
        )}
      </div>
      <span class="actions">
        {!isAgain && (
          <Button
            class="plain"
            aria-label={`Options of ${file.name}`}
            aria-expanded={isOpened}
            onClick={() => {
              setOpened(!isOpened)
              // No job is made while its options may still change.
              if (!isOver(upload)) uploads.with((queue) => queue.hold(number))
            }}
          >
            Options
          </Button>
        )}
        <SendButtons upload={upload} uploads={uploads} />
      </span>
      {problem && <ErrorNotice problem={problem} />}
      {isOpened && <OwnOptions {...props} />}
    </li>
  )
}

function SendButtons({ upload, uploads }: Pick<UploadRowProps, 'upload' | 'uploads'>) {
  const { number, file, state, isHeld } = upload
  const again = state === 'refused' ? 'Send anyway' : 'Send again'
  return (
    <>
      {(isOver(upload) || isHeld) && (
        <Button
          class="plain"
          aria-label={isOver(upload) ? `${again}: ${file.name}` : `Send ${file.name}`}
          onClick={({ currentTarget }) => {
            if (isCorrected(currentTarget.closest('li')))
              uploads.with((queue) => (isOver(upload) ? queue.retry(number) : queue.release(number)))
          }}
        >
          {isOver(upload) ? again : 'Send'}
        </Button>
      )}
      <Button
        class="plain"
        aria-label={`${isOver(upload) ? 'Dismiss' : 'Stop'} ${file.name}`}
        onClick={() => uploads.with((queue) => queue.remove(number))}
      >
        {isOver(upload) ? 'Dismiss' : 'Stop'}
      </Button>
    </>
  )
}

function OwnOptions({ client, workflows, uploads, upload }: UploadRowProps) {
  const { number, file, choices, refusals = {} } = upload
  const { show } = useMessages()
  const choose = (chosen: Choices) => uploads.with((queue) => queue.choose(number, chosen))
  const chooseForAll = () =>
    uploads.with((queue) => {
      queue.chooseForAll(choices)
      show({ text: `All ${uploads.list.length} songs have these options.` })
    })
  return (
    <div class="stack own" role="group" aria-label={`Options of ${file.name}`}>
      <WorkflowChoice workflows={workflows} choices={choices} onChange={choose} />
      <div class="fields">
        <OptionFields id={`upload-${number}`} {...{ client, choices, refusals }} onChange={choose} />
      </div>
      {uploads.list.length > 1 && (
        <p>
          <Button onClick={chooseForAll}>Use for all files</Button>
        </p>
      )}
    </div>
  )
}

function isOver({ state }: Upload): boolean {
  return state === 'failed' || state === 'refused'
}

export function uploadStateWords({ state, progress, isHeld }: Upload): string {
  switch (state) {
    case 'waiting':
      return 'Waiting to upload'
    case 'sending':
      if (progress < 1) return `Uploading ${Math.floor(progress * 100)} %`
      return isHeld ? 'Ready to send' : 'Uploaded'
    case 'disconnected':
      return 'Connection lost. Trying again.'
    case 'refused':
    case 'failed':
      return 'Not sent'
    default:
      return state satisfies never
  }
}
