import { useEffect, useRef, useState } from 'preact/hooks'
import { listen } from '../elements/listen.js'
import type { Client } from '../service/page-client.js'
import { toastMs, useMessages } from '../elements/messages.js'
import { explained } from './explained.js'

export interface Deletions {
  /** Jobs that are no longer shown, though the service may still have them. */
  hidden: ReadonlySet<string>
  /** Hides the jobs now, and deletes them once it can no longer be undone. */
  remove(jobs: readonly { id: string; name: string | null }[]): void
}

/** A page that is gone cannot repeat requests that were too many at once. */
const mostAtOnce = 50

/** Deletions that can be undone for some seconds: the request is sent afterwards, or when the page is left. */
export function useDeletions(client: Client): Deletions {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set())
  const pending = useRef(new Map<string, ReturnType<typeof setTimeout>>())
  const { show } = useMessages()

  const reveal = (ids: readonly string[]) => setHidden((all) => new Set([...all].filter((id) => !ids.includes(id))))
  /** One after the other: browsers refuse hundreds of requests at once, and so does the service. */
  const destroy = async (ids: readonly string[]) => {
    for (const id of ids) {
      if (!pending.current.delete(id)) continue
      try {
        await client.deleteJob(id)
      } catch (error) {
        reveal([id])
        show({ text: `A song could not be deleted. ${(await explained(error)).text}` })
      }
    }
  }
  useEffect(() => {
    const flush = () => {
      for (const [id, timer] of pending.current) {
        clearTimeout(timer)
        void destroy([id])
      }
    }
    const unlisten = listen(window, {
      pagehide: flush,
      beforeunload: (event) => pending.current.size > mostAtOnce && event.preventDefault(),
    })
    return () => {
      unlisten()
      flush()
    }
  }, [client])

  const remove = (jobs: readonly { id: string; name: string | null }[]) => {
    const ids = jobs.map(({ id }) => id)
    setHidden((all) => new Set([...all, ...ids]))
    const timer = setTimeout(() => void destroy(ids), toastMs)
    for (const id of ids) pending.current.set(id, timer)
    const [first] = jobs
    show({
      text: jobs.length === 1 ? `Deleted ${first?.name ?? 'the song'}.` : `Deleted ${jobs.length} songs.`,
      action: {
        label: 'Undo',
        run() {
          clearTimeout(timer)
          for (const id of ids) pending.current.delete(id)
          reveal(ids)
        },
      },
    })
  }
  return { hidden, remove }
}
