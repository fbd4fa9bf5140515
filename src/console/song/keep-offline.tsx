import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import type { Job } from '../../client/client.js'
import { ErrorNotice } from '../elements/error-notice.js'
import { canKeep, forgetOffline, keepOffline, NoRoom, offlineDays, offlineSongs, storageRoom } from './offline-songs.js'
import type { Client } from '../service/page-client.js'
import { explain, type Explanation, sizeWords } from '../words/words.js'

type State = { kind: 'unknown' | 'absent' } | { kind: 'keeping'; share: number } | { kind: 'kept'; bytes: number }

/** Keeps a song on this device, to play it without a network. */
export function KeepOffline({ client, job }: { client: Client; job: Job }) {
  const [state, setState] = useState<State>({ kind: 'unknown' })
  const [problem, setProblem] = useState<Explanation>()
  const room = useRoom(state.kind)
  const stop = useRef(new AbortController())
  const look = async () => {
    const song = (await offlineSongs()).find((one) => one.job.id === job.id)
    setState(song ? { kind: 'kept', bytes: song.bytes } : { kind: 'absent' })
  }
  useEffect(() => {
    void look()
    return () => stop.current.abort()
  }, [job.id])
  if (!canKeep) return null

  const keep = async () => {
    stop.current = new AbortController()
    const { signal } = stop.current
    setProblem(undefined)
    setState({ kind: 'keeping', share: 0 })
    try {
      await keepOffline(client, job, { signal, onProgress: (share) => setState({ kind: 'keeping', share }) })
    } catch (error) {
      if (error instanceof NoRoom) setProblem({ text: `This device has no room for the song. ${room}` })
      else if (!signal.aborted) setProblem(explain(error))
    }
    if (!signal.aborted) await look()
  }
  return (
    <section class="stack screen" aria-labelledby="offline-title">
      <h2 id="offline-title">Offline</h2>
      {problem && <ErrorNotice problem={problem} />}
      <div class="line">
        <span class="quiet" role="status">
          {state.kind === 'kept' && `Kept on this device (${sizeWords(state.bytes)}). It plays without a network. `}
          {state.kind === 'keeping' && `Keeping the song … ${Math.floor(state.share * 100)} %`}
          {state.kind === 'absent' && 'Keep the stems on this device, to play them without a network. '}
          {state.kind !== 'keeping' && room}
        </span>
        {state.kind === 'absent' && <Button onClick={() => void keep()}>Keep offline</Button>}
        {state.kind === 'kept' && (
          <Button onClick={() => void forgetOffline(job.id).then(look)}>Remove from this device</Button>
        )}
      </div>
      <p class="quiet small">
        It is removed when you sign out, when the service has deleted the song, when your key is revoked, and after{' '}
        {offlineDays} days without the service.
      </p>
    </section>
  )
}

/** Words for the storage that the browser allows to the page. */
function useRoom(changed: string): string {
  const [words, setWords] = useState('')
  useEffect(() => {
    if (!canKeep) return
    storageRoom().then(
      ({ quota, usage = 0 }) =>
        quota !== undefined &&
        setWords(`${sizeWords(usage)} of the ${sizeWords(quota)} that the browser allows is used.`),
      () => undefined,
    )
  }, [changed])
  return words
}
