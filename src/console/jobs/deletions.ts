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

/** Deletions that can be undone for some seconds: the request is sent afterwards, or when the page is left. */
export function useDeletions(client: Client): Deletions {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set())
  const pending = useRef(new Map<string, ReturnType<typeof setTimeout>>())
  const { show } = useMessages()

  const reveal = (ids: readonly string[]) => setHidden((all) => new Set([...all].filter((id) => !ids.includes(id))))
  const destroy = (id: string) => {
    pending.current.delete(id)
    client.deleteJob(id).catch(async (error: unknown) => {
      reveal([id])
      show({ text: `A song could not be deleted. ${(await explained(error)).text}` })
    })
  }
  useEffect(() => {
    const flush = () => {
      for (const [id, timer] of pending.current) {
        clearTimeout(timer)
        destroy(id)
      }
    }
    const unlisten = listen(window, { pagehide: flush })
    return () => {
      unlisten()
      flush()
    }
  }, [client])

  const remove = (jobs: readonly { id: string; name: string | null }[]) => {
    const ids = jobs.map(({ id }) => id)
    setHidden((all) => new Set([...all, ...ids]))
    for (const id of ids)
      pending.current.set(
        id,
        setTimeout(() => destroy(id), toastMs),
      )
    const [first] = jobs
    show({
      text: jobs.length === 1 ? `Deleted ${first?.name ?? 'the song'}.` : `Deleted ${jobs.length} songs.`,
      action: {
        label: 'Undo',
        run() {
          for (const id of ids) {
            clearTimeout(pending.current.get(id))
            pending.current.delete(id)
          }
          reveal(ids)
        },
      },
    })
  }
  return { hidden, remove }
}
