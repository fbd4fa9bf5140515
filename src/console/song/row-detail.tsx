import { useEffect } from 'preact/hooks'
import type { Job } from '../../client/client.js'
import { MiniWaveform } from '../pictures/mini-waveform.js'
import type { JobStore } from '../service/job-store.js'
import type { Client } from '../service/page-client.js'

interface RowDetailProps {
  client: Client
  store: JobStore
  job: Job
}

/** What a row shows that lists do not have: the outline of a song, or its place in the queue. */
export function RowDetail({ client, store, job }: RowDetailProps) {
  if (job.result) return <MiniWaveform client={client} job={job} />
  return job.status === 'QUEUED' ? <PlaceReader client={client} store={store} job={job} /> : null
}

/** Reads the place into the store, and so into the row. */
function PlaceReader({ client, store, job: { id } }: RowDetailProps) {
  useEffect(() => {
    const stop = new AbortController()
    const revision = store.next()
    client.getJob(id, { signal: stop.signal }).then(
      (job) => store.read([job], revision),
      // The next change has the place.
      () => undefined,
    )
    return () => stop.abort()
  }, [client, store, id])
  return null
}
