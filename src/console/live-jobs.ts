import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ClientError, type Job } from '../client/client.js'
import type { Client } from './page-client.js'

export type ConnectionState = 'connecting' | 'connected' | 'reconnecting'

export interface JobListener {
  onJob(job: Job): void
  onDeleted(id: string): void
  /** A job that this page has made. */
  onCreated?(job: Job): void
  /** Jobs as they were when the page asked for them. */
  onRead?(jobs: readonly Job[]): void
}

/** The one stream of changes that the whole page lives on. */
export interface LiveJobs {
  state: ConnectionState
  /** Rises with each connection: what was shown before may have missed changes and has to be read again. */
  connections: number
  listen(listener: JobListener): () => void
  /**
   * Tells the listeners of a job that this page has made; the stream tells of it later, or only once it is connected
   * again.
   */
  created(job: Job): void
  /** Tells the listeners what the page was told on request. */
  read(jobs: readonly Job[]): void
}

export function useLiveJobs(client: Client, onRefused: () => void): LiveJobs {
  const [state, setState] = useState<ConnectionState>('connecting')
  const [connections, setConnections] = useState(0)
  const listeners = useRef(new Set<JobListener>())
  const refused = useRef(onRefused)
  refused.current = onRefused

  useEffect(() => {
    let stop = new AbortController()
    const follow = () => {
      stop = new AbortController()
      const { signal } = stop
      client
        .followJobs({
          signal,
          onJob: (job) => listeners.current.forEach((one) => one.onJob(job)),
          onDeleted: (id) => listeners.current.forEach((one) => one.onDeleted(id)),
          onState(next) {
            setState(next)
            if (next === 'connected') setConnections((now) => now + 1)
          },
        })
        .catch((error: unknown) => {
          if (signal.aborted) return
          setState('reconnecting')
          if (ClientError.is(error) && error.status === 401) refused.current()
        })
    }
    // The browser knows at once what a stream shows only by its silence.
    const onOffline = () => {
      stop.abort()
      setState('reconnecting')
    }
    const onOnline = () => {
      stop.abort()
      follow()
    }
    addEventListener('offline', onOffline)
    addEventListener('online', onOnline)
    follow()
    return () => {
      stop.abort()
      removeEventListener('offline', onOffline)
      removeEventListener('online', onOnline)
    }
  }, [client])

  return useMemo(
    () => ({
      state,
      connections,
      listen(listener) {
        listeners.current.add(listener)
        return () => listeners.current.delete(listener)
      },
      created: (job) => listeners.current.forEach((one) => one.onCreated?.(job)),
      read: (jobs) => listeners.current.forEach((one) => one.onRead?.(jobs)),
    }),
    [state, connections],
  )
}
