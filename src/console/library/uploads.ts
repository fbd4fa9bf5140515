import { useEffect, useReducer, useRef } from 'preact/hooks'
import type { Client } from '../service/page-client.js'
import type { Choices } from '../options/choices.js'
import { later } from '../jobs/later-parts.js'
import { unreachable } from '../words/first-words.js'
import { listen } from '../elements/listen.js'
import { useMessages } from '../elements/messages.js'
import type { UploadListener, UploadsPage } from '../uploads/upload.js'
import type { UploadQueue, Uploads } from '../uploads/upload-queue.js'

const none: Pick<Uploads, 'list' | 'made'> = { list: [], made: new Map() }

export function useUploads(client: Client, choices: Choices, listener: UploadListener): Uploads {
  const [, render] = useReducer((times: number) => times + 1, 0)
  const { clear, show } = useMessages()
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
  useEffect(
    () => () => {
      // What follows may be shown to anybody, so it names no song.
      document.title = 'stemwork'
      clear()
      queue.current?.stop(show)
    },
    [],
  )

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
