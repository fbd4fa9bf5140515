import { useEffect, useRef, useState } from 'preact/hooks'
import { ClientError, type Client } from '../client/client.js'
import { type Choices, choosable } from './job-choices.js'
import { jobAddress } from './route.js'
import { explain, type Explanation } from './words.js'

export interface Upload {
  number: number
  file: File
  /** 0..1 */
  progress: number
  problem?: Explanation
}

export interface Uploads {
  list: readonly Upload[]
  /** Sends files one after the other and makes a job of each. A single one is then shown. */
  add(files: readonly File[], choices: Choices): void
  /** Stops it, or takes a failed one off the list. */
  remove(number: number): void
}

export function useUploads(client: Client): Uploads {
  const [list, setList] = useState<readonly Upload[]>([])
  const stops = useRef(new Map<number, AbortController>())
  const last = useRef(Promise.resolve())
  const count = useRef(0)

  const isSending = list.some(({ problem }) => !problem)
  useEffect(() => {
    if (!isSending) return
    const onLeave = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', onLeave)
    return () => removeEventListener('beforeunload', onLeave)
  }, [isSending])
  useEffect(() => () => stops.current.forEach((stop) => stop.abort()), [])

  const change = (number: number, facts: Partial<Upload>) =>
    setList((all) => all.map((one) => (one.number === number ? { ...one, ...facts } : one)))
  const drop = (number: number) => {
    stops.current.delete(number)
    setList((all) => all.filter((one) => one.number !== number))
  }

  async function send({ number, file }: Upload, choices: Choices, signal: AbortSignal, isOnly: boolean): Promise<void> {
    try {
      signal.throwIfAborted()
      const onProgress = ({ bytes }: { bytes: number }) =>
        change(number, { progress: file.size > 0 ? bytes / file.size : 1 })
      const { downloadUrl } = await client.upload(file, { signal, onProgress })
      const { workflow, batchName, model, format } = choices
      const { models, formats, hasPictures } = await choosable(client, workflow, signal)
      const params = {
        inputUrl: downloadUrl,
        ...(hasPictures ? { pictures: true } : {}),
        // Another workflow may have been chosen since, which knows neither.
        ...(model !== undefined && models.includes(model) ? { model } : {}),
        ...(format !== undefined && formats.includes(format) ? { format } : {}),
      }
      const { id } = await client.createJob(
        { workflow, name: file.name.slice(0, 255) || 'song', batchName, params },
        { signal },
      )
      drop(number)
      if (isOnly) location.hash = jobAddress(id)
    } catch (error) {
      if (signal.aborted) return
      // A refused file says no more than that; creating a job with it would tell why, and the answer has done so already.
      change(number, {
        problem: explain(
          ClientError.is(error) ? error : new ClientError(String(error), { code: 'NETWORK', status: 0 }),
        ),
      })
    }
  }

  return {
    list,
    add(files, choices) {
      for (const file of files) {
        const upload: Upload = { number: count.current++, file, progress: 0 }
        const stop = new AbortController()
        stops.current.set(upload.number, stop)
        setList((all) => [...all, upload])
        last.current = last.current.then(() => send(upload, choices, stop.signal, files.length === 1))
      }
    },
    remove(number) {
      stops.current.get(number)?.abort()
      drop(number)
    },
  }
}
