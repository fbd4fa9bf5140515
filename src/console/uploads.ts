import { useEffect, useReducer, useRef } from 'preact/hooks'
import type { Client } from './page-client.js'
import type { Choices } from './choices.js'
import { later } from './later-parts.js'
import { unreachable } from './first-words.js'
import { listen } from './listen.js'
import { useMessages } from './messages.js'
import type { UploadListener, UploadsPage } from './upload.js'
import type { UploadQueue, Uploads } from './upload-queue.js'

const none: Pick<Uploads, 'list' | 'made'> = { list: [], made: new Map() }

export function useUploads(client: Client, choices: Choices, listener: UploadListener): Uploads {
  const [, render] = useReducer((times: number) => times + 1, 0)
  const { show } = useMessages()
  const queue = useRef<UploadQueue>(undefined)
  const page = useRef<UploadsPage>(undefined)
  const now = { ...listener, client, choices, changed: () => render(undefined) }
  page.current = Object.assign(page.current ?? now, now)
  const { list, made } = queue.current ?? none

  const isSending = list.some(({ state }) => state !== 'failed' && state !== 'refused')
  useEffect(
    () => (isSending ? listen(window, { beforeunload: (event) => event.preventDefault() }) : undefined),
    [isSending],
  )
  useEffect(() => () => queue.current?.stop(), [])

  return {
    list,
    made,
    with: (act) =>
      void later.load().then(
        ({ UploadQueue }) => act((queue.current ??= new UploadQueue(page.current ?? now))),
        () => show({ text: unreachable }),
      ),
  }
}
