import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ClientError, type NewJob } from '../client/client.js'
import type { Client } from './page-client.js'
import { checkFile } from './check-file.js'
import type { Choices, Refusals } from './job-choices.js'
import { paramFields, paramsOf } from './param-fields.js'
import { explain, type Explanation } from './words.js'

export interface Upload {
  number: number
  file: File
  /** Its job takes the settings of this workflow; undefined for a job like an earlier one. */
  workflow: string | undefined
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
  /** The file that a job of this visit was made from. */
  fileOf(jobId: string): File | undefined
}

/** What is asked of the service once the file is there. */
type MakeJob = (inputUrl: string, file: File) => Promise<NewJob>

const firstPauseMs = 1000
const longestPauseMs = 15_000

interface UploadListener {
  onCreated(jobId: string, file: File): void
  onRefused(file: File, problem: Explanation): void
  /** The service does not take the settings of the workflow. */
  onParamsRefused(workflow: string, refusals: Refusals): void
}

export function useUploads(client: Client, choices: Choices, listener: UploadListener): Uploads {
  const [list, setList] = useState<readonly Upload[]>([])
  const page = useRef({ choices, listener })
  page.current = { choices, listener }
  const queue = useMemo(() => new UploadQueue(client, page, setList), [])

  const isSending = list.some(({ state }) => state !== 'failed' && state !== 'refused')
  useEffect(() => {
    if (!isSending) return
    const onLeave = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', onLeave)
    return () => removeEventListener('beforeunload', onLeave)
  }, [isSending])
  useEffect(() => () => queue.stop(), [])

  return {
    list,
    add: (files) => files.forEach((file) => queue.add(file)),
    addLike: (file, job) => queue.addLike(file, job),
    retry(number) {
      const upload = list.find((one) => one.number === number)
      if (upload) queue.retry(upload)
    },
    remove: (number) => queue.remove(number),
    fileOf: (jobId) => queue.fileOf(jobId),
  }
}

type ListChange = (all: readonly Upload[]) => readonly Upload[]

/** What the page shows now. */
interface Page {
  readonly current: { choices: Choices; listener: UploadListener }
}

class UploadQueue {
  readonly #client: Client
  readonly #page: Page
  readonly #setList: (change: ListChange) => void
  readonly #stops = new Map<number, AbortController>()
  readonly #orders = new Map<number, MakeJob>()
  readonly #files = new Map<string, File>()
  /** What the check of an upload found, until it is sent in spite of it. */
  readonly #checks = new Map<number, Promise<Explanation | undefined>>()
  #last = Promise.resolve()
  #count = 0

  constructor(client: Client, page: Page, setList: (change: ListChange) => void) {
    this.#client = client
    this.#page = page
    this.#setList = setList
  }

  add(file: File): void {
    const { workflow } = this.#page.current.choices
    this.#order(file, workflow, { workflow, makeJob: this.#chosenJob(workflow) })
  }

  addLike(file: File, job: Parameters<Uploads['addLike']>[1]): void {
    const makeJob: MakeJob = async (inputUrl) => ({ ...job, params: { ...job.params, inputUrl } })
    this.#order(file, job.workflow, { workflow: undefined, makeJob })
  }

  retry(upload: Upload): void {
    const { number, workflow } = upload
    this.#checks.delete(number)
    this.#change(number, { state: 'waiting', progress: 0, problem: undefined })
    if (workflow !== undefined) this.#orders.set(number, this.#chosenJob(workflow))
    this.#enqueue(upload)
  }

  remove(number: number): void {
    this.#stops.get(number)?.abort()
    this.#drop(number)
  }

  fileOf(jobId: string): File | undefined {
    return this.#files.get(jobId)
  }

  stop(): void {
    for (const stop of this.#stops.values()) stop.abort()
  }

  #order(file: File, checkedFor: string, { workflow, makeJob }: Pick<Upload, 'workflow'> & { makeJob: MakeJob }): void {
    const upload: Upload = { number: this.#count++, file, workflow, state: 'waiting', progress: 0 }
    this.#orders.set(upload.number, makeJob)
    this.#setList((all) => [...all, upload])
    // At once, not when its upload would begin: a person who dropped twenty files hears of the wrong ones now.
    const check = checkFile(this.#client, checkedFor, file).catch(() => undefined)
    this.#checks.set(upload.number, check)
    void check.then((problem) => {
      if (!problem) return
      this.#change(upload.number, { state: 'refused', problem })
      this.#page.current.listener.onRefused(file, problem)
    })
    this.#enqueue(upload)
  }

  #enqueue(upload: Upload): void {
    const stop = new AbortController()
    this.#stops.set(upload.number, stop)
    this.#last = this.#last.then(() => this.#send(upload, stop.signal))
  }

  async #send({ number, file, workflow }: Upload, signal: AbortSignal): Promise<void> {
    try {
      const problem = await this.#checks.get(number)
      signal.throwIfAborted()
      if (problem) return
      const downloadUrl = await this.#upload(number, file, signal)
      const makeJob = this.#orders.get(number)
      if (!makeJob) return
      const { id } = await overLostConnections(signal, {
        attempt: async () => this.#client.createJob(await makeJob(downloadUrl, file), { signal }),
        onLost: () => this.#change(number, { state: 'disconnected' }),
      })
      this.#files.set(id, file)
      this.#drop(number)
      this.#page.current.listener.onCreated(id, file)
    } catch (error) {
      if (signal.aborted) return
      this.#change(number, { state: 'failed', problem: explain(error) })
      const refusals = paramRefusals(error)
      if (refusals && workflow !== undefined) this.#page.current.listener.onParamsRefused(workflow, refusals)
    }
  }

  async #upload(number: number, file: File, signal: AbortSignal): Promise<string> {
    const { downloadUrl } = await overLostConnections(signal, {
      attempt: () =>
        this.#client.upload(file, {
          signal,
          onProgress: ({ bytes }) =>
            this.#change(number, { state: 'sending', progress: file.size > 0 ? bytes / file.size : 1 }),
          onInterrupted: () => this.#change(number, { state: 'disconnected' }),
        }),
      onLost: () => this.#change(number, { state: 'disconnected', progress: 0 }),
    })
    return downloadUrl
  }

  #chosenJob(workflow: string): MakeJob {
    const { batchName, settings } = this.#page.current.choices
    return async (inputUrl, { name }) => {
      const fields = await paramFields(this.#client, workflow)
      const params = { inputUrl, ...paramsOf(fields, settings[workflow] ?? {}) }
      return { workflow, name: name.slice(0, 255) || 'song', batchName, params }
    }
  }

  #change(number: number, facts: Partial<Upload>): void {
    this.#setList((all) => all.map((one) => (one.number === number ? { ...one, ...facts } : one)))
  }

  #drop(number: number): void {
    this.#stops.delete(number)
    this.#checks.delete(number)
    this.#setList((all) => all.filter((one) => one.number !== number))
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

/** Tries again, with pauses, for as long as the connection is what is missing. */
async function overLostConnections<Value>(
  signal: AbortSignal,
  { attempt, onLost }: { attempt(): Promise<Value>; onLost(): void },
): Promise<Value> {
  for (let retries = 0; ; retries++) {
    try {
      return await attempt()
    } catch (error) {
      signal.throwIfAborted()
      const isLost = ClientError.is(error) && (error.status === 0 || error.status === 502 || error.status === 504)
      if (!isLost || error.code === 'BAD_ANSWER') throw error
      onLost()
      await connectionBack(Math.min(longestPauseMs, firstPauseMs * 2 ** retries), signal)
    }
  }
}

/** Resolves when the browser says that it is online again, at the latest after `ms`. */
function connectionBack(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => () => {
      clearTimeout(timer)
      removeEventListener('online', onOnline)
      signal.removeEventListener('abort', onAbort)
      settle()
    }
    const onOnline = end(resolve)
    const onAbort = end(() => reject(signal.reason))
    const timer = setTimeout(onOnline, ms)
    addEventListener('online', onOnline)
    signal.addEventListener('abort', onAbort)
  })
}
