import { useEffect, useRef, useState } from 'preact/hooks'
import { ClientError, type NewJob } from '../client/client.js'
import type { Client } from './page-client.js'
import type { Choices, Refusals } from './choices.js'
import { explained } from './explained.js'
import { later } from './later-parts.js'
import type { Explanation } from './first-words.js'

export interface Upload {
  number: number
  file: File
  workflow: string
  /** Its job is like an earlier one, whatever is chosen now. */
  isAgain: boolean
  /** `refused`: the page thinks that the service would not take it. */
  state: 'waiting' | 'sending' | 'disconnected' | 'refused' | 'failed'
  /** 0..1 */
  progress: number
  problem?: Explanation
}

export interface Uploads {
  list: readonly Upload[]
  /** Sends files one after the other and makes a job of each, as is chosen now. */
  add(files: readonly File[]): void
  /** Sends a file for a job like an earlier one. */
  addLike(file: File, job: Omit<NewJob, 'params'> & { params: Record<string, unknown> }): void
  /** Sends a failed one once more, with the settings as they are now, or a refused one all the same. */
  retry(number: number): void
  /** Stops it, or takes a failed one off the list. */
  remove(number: number): void
  /** Those of which jobs were made in this visit, by the ids of these. */
  made: ReadonlyMap<string, Upload>
}

/** What is asked of the service once the file is there. */
type MakeJob = (inputUrl: string, file: File) => Promise<NewJob>

interface UploadListener {
  onCreated(jobId: string, file: File): void
  onRefused(file: File, problem: Explanation): void
  /** The service does not take the settings of the workflow. */
  onParamsRefused(workflow: string, refusals: Refusals): void
}

export function useUploads(client: Client, choices: Choices, listener: UploadListener): Uploads {
  const [list, setList] = useState<readonly Upload[]>([])
  const stops = useRef(new Map<number, AbortController>())
  const orders = useRef(new Map<number, MakeJob>())
  const made = useRef(new Map<string, Upload>())
  /** What the check of an upload found, until it is sent in spite of it. */
  const checks = useRef(new Map<number, Promise<Explanation | undefined>>())
  const last = useRef(Promise.resolve())
  const count = useRef(0)
  const listening = useRef(listener)
  listening.current = listener
  const latest = useRef(choices)
  latest.current = choices

  const isSending = list.some(({ state }) => state !== 'failed' && state !== 'refused')
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
    checks.current.delete(number)
    setList((all) => all.filter((one) => one.number !== number))
  }

  async function send(upload: Upload, signal: AbortSignal): Promise<void> {
    const { number, file, workflow, isAgain } = upload
    try {
      const problem = await checks.current.get(number)
      signal.throwIfAborted()
      if (problem) return
      const onProgress = ({ bytes }: { bytes: number }) =>
        change(number, { state: 'sending', progress: file.size > 0 ? bytes / file.size : 1 })
      const { overLostConnections } = await later.load()
      const { downloadUrl } = await overLostConnections(signal, {
        attempt: () =>
          client.upload(file, { signal, onProgress, onInterrupted: () => change(number, { state: 'disconnected' }) }),
        onLost: () => change(number, { state: 'disconnected', progress: 0 }),
      })
      const makeJob = orders.current.get(number)
      if (!makeJob) return
      const { id } = await overLostConnections(signal, {
        attempt: async () => client.createJob(await makeJob(downloadUrl, file), { signal }),
        onLost: () => change(number, { state: 'disconnected' }),
      })
      made.current.set(id, upload)
      drop(number)
      listening.current.onCreated(id, file)
    } catch (error) {
      if (signal.aborted) return
      change(number, { state: 'failed', problem: await explained(error) })
      const refusals = paramRefusals(error)
      if (refusals && !isAgain) listening.current.onParamsRefused(workflow, refusals)
    }
  }

  const queue = (upload: Upload) => {
    const stop = new AbortController()
    stops.current.set(upload.number, stop)
    last.current = last.current.then(() => send(upload, stop.signal))
  }
  const chosenJob =
    (workflow: string, { batchName, settings }: Choices): MakeJob =>
    async (inputUrl, { name }) => {
      const { paramFields, paramsOf } = await later.load()
      const params = { inputUrl, ...paramsOf(await paramFields(client, workflow), settings[workflow] ?? {}) }
      return { workflow, name: name.slice(0, 255) || 'song', batchName, params }
    }
  const order = (file: File, workflow: string, likeEarlier?: MakeJob) => {
    const upload: Upload = {
      number: count.current++,
      file,
      workflow,
      isAgain: likeEarlier !== undefined,
      state: 'waiting',
      progress: 0,
    }
    orders.current.set(upload.number, likeEarlier ?? chosenJob(workflow, latest.current))
    setList((all) => [...all, upload])
    // At once, not when its upload would begin: a person who dropped twenty files hears of the wrong ones now.
    const check = import('./check-file.js')
      .then(({ checkFile }) => checkFile(client, workflow, file))
      .catch(() => undefined)
    checks.current.set(upload.number, check)
    void check.then((problem) => {
      if (!problem) return
      change(upload.number, { state: 'refused', problem })
      listening.current.onRefused(file, problem)
    })
    queue(upload)
  }

  return {
    list,
    add(added) {
      for (const file of added) order(file, latest.current.workflow)
    },
    addLike(file, job) {
      order(file, job.workflow, async (inputUrl) => ({ ...job, params: { ...job.params, inputUrl } }))
    },
    retry(number) {
      const upload = list.find((one) => one.number === number)
      if (!upload) return
      checks.current.delete(number)
      change(number, { state: 'waiting', progress: 0, problem: undefined })
      if (!upload.isAgain) orders.current.set(number, chosenJob(upload.workflow, latest.current))
      queue(upload)
    },
    remove(number) {
      stops.current.get(number)?.abort()
      drop(number)
    },
    made: made.current,
  }
}

/** What the service said against params of a job. */
function paramRefusals(error: unknown): Refusals | undefined {
  if (!ClientError.is(error)) return undefined
  const refused = error.errors.filter(({ path }) => path.startsWith('params.'))
  return refused.length > 0
    ? Object.fromEntries(refused.map(({ path, message }) => [path.slice('params.'.length), message]))
    : undefined
}
