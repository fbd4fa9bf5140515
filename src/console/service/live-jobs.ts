import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import { ClientError } from '../../client/client.js'
import { listen } from '../elements/listen.js'
import type { Client } from './page-client.js'
import { JobStore } from './job-store.js'

export type ConnectionState = 'connecting' | 'connected' | 'reconnecting'

/** The one stream of changes that the whole page uses, and the jobs that it reports. */
export function useLiveJobs(client: Client, onRefused: () => void): { jobs: JobStore; state: ConnectionState } {
  const jobs = useMemo(() => new JobStore(), [client])
  // An object, so that a new connection renders even in the same state.
  const [{ state }, setState] = useState<{ state: ConnectionState }>({ state: 'connecting' })
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
          onJob: (job) => jobs.tell(job),
          onDeleted: (id) => jobs.tellDeleted(id),
          onState(next) {
            if (next === 'connected') jobs.connected()
            setState({ state: next })
          },
        })
        .catch((error: unknown) => {
          if (signal.aborted) return
          setState({ state: 'reconnecting' })
          if (ClientError.is(error) && error.status === 401) refused.current()
        })
    }
    // The browser detects a lost connection at once; the stream would reveal it only by its silence.
    const unlisten = listen(window, {
      offline() {
        stop.abort()
        setState({ state: 'reconnecting' })
      },
      online() {
        stop.abort()
        follow()
      },
    })
    follow()
    return () => {
      stop.abort()
      unlisten()
    }
  }, [client])

  return { jobs, state }
}

/** Renders again with each change of a job, or of this one alone. */
export function useChanges(jobs: JobStore, id?: string): void {
  const [, render] = useReducer((count: number) => count + 1, 0)
  // A layout effect, so that no change is missed in between.
  useLayoutEffect(
    () => jobs.onChange((change) => (id === undefined || change.id === id) && render(undefined)),
    [jobs, id],
  )
}
