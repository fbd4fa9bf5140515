import { useEffect } from 'preact/hooks'
import type { Client } from '../service/page-client.js'
import type { JobStore } from '../service/job-store.js'

interface WaitingPlaceProps {
  client: Client
  store: JobStore
  id: string
}

/** Shows nothing: reads the job's place in the queue, which lists do not have, into the store. */
export function WaitingPlace({ client, store, id }: WaitingPlaceProps) {
  useEffect(() => {
    const stop = new AbortController()
    const revision = store.next()
    client.getJob(id, { signal: stop.signal }).then(
      (job) => store.read([job], revision),
      // The place is shown after the next change.
      () => undefined,
    )
    return () => stop.abort()
  }, [client, store, id])
  return null
}
