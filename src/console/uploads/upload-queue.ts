import { ClientError, type NewJob } from '../../client/client.js'
import { checkFile } from './check-file.js'
import type { Choices, Refusals } from '../options/choices.js'
import type { Messages } from '../elements/messages.js'
import { overLostConnections } from '../service/lost-connections.js'
import { paramFields, paramsOf } from '../options/param-fields.js'
import type { Upload, UploadsPage } from './upload.js'
import { explain, type Explanation } from '../words/words.js'

export interface Uploads extends Pick<UploadQueue, 'list'> {
  made: ReadonlyMap<string, Upload>
  /** The code for uploads is loaded with the first of them. */
  with(act: (queue: UploadQueue) => void): void
}

type LikeEarlier = Omit<NewJob, 'params'> & { params: Record<string, unknown> }

/** The part of an upload that is not shown. */
interface Course {
  stop: AbortController
  /** Problem with the file; ignored if the person sends it anyway. */
  check?: Promise<Explanation | undefined>
  likeEarlier?: LikeEarlier
  /** Continues an upload that the person has held back. */
  release?(): void
}

/** Sends files one after the other and creates a job from each. */
export class UploadQueue {
  list: readonly Upload[] = []
  /** Uploads that became jobs in this visit, by the ids of the jobs. */
  readonly made = new Map<string, Upload>()
  readonly #page: UploadsPage
  readonly #courses = new Map<number, Course>()
  #last = Promise.resolve()
  #count = 0

  constructor(page: UploadsPage) {
    this.#page = page
  }

  /** Creates a job from each file, with the current choices unless others are made for it before. */
  add(files: readonly File[]): void {
    const { choices } = this.#page
    for (const file of files) this.#order(file, choices, { isHeld: choices.isEach === true && files.length > 1 })
  }

  /** Sends a file for a job like an earlier one. */
  addLike(file: File, likeEarlier: LikeEarlier): void {
    this.#order(file, { workflow: likeEarlier.workflow, settings: {} }, { likeEarlier })
  }

  /** Holds the job of an upload back until `release`. */
  hold(number: number): void {
    this.#change(number, { isHeld: true })
  }

  release(number: number): void {
    this.#change(number, { isHeld: false })
    this.#courses.get(number)?.release?.()
  }

  choose(number: number, choices: Choices): void {
    const upload = this.#upload(number)
    if (!upload || upload.isAgain) return
    this.#change(number, { choices, isOwn: true, refusals: undefined })
    if (choices.workflow === upload.choices.workflow) return
    // Another workflow may accept other files.
    if (upload.state === 'refused') this.#queue(number, { isHeld: true })
    if (upload.state !== 'failed') this.#check(number)
  }

  chooseForAll(choices: Choices): void {
    for (const { number } of this.list) this.choose(number, choices)
  }

  /** Sends a failed upload again, with the current settings, or a refused one anyway. */
  retry(number: number): void {
    const upload = this.#upload(number)
    if (!upload) return
    const course = this.#courses.get(number)
    if (course) course.check = undefined
    const { workflow } = upload.choices
    const choices = upload.isOwn || upload.isAgain ? upload.choices : { ...this.#page.choices, workflow }
    this.#queue(number, { choices, isHeld: false })
  }

  /** Stops an upload, or removes a failed one from the list. */
  remove(number: number): void {
    const course = this.#courses.get(number)
    course?.stop.abort()
    this.#drop(number)
    course?.release?.()
  }

  /** Stops all uploads when the person is signed out, and says so. */
  stop(show: Messages['show']): void {
    const { length } = this.list
    for (const { stop } of this.#courses.values()) stop.abort()
    if (length > 0) show({ text: `${length === 1 ? 'A song was' : `${length} songs were`} not sent.`, isLasting: true })
  }

  #upload(number: number): Upload | undefined {
    return this.list.find((one) => one.number === number)
  }

  #show(list: readonly Upload[]): void {
    this.list = list
    this.#page.changed()
  }

  #change(number: number, facts: Partial<Upload>): void {
    this.#show(this.list.map((one) => (one.number === number ? { ...one, ...facts } : one)))
  }

  #drop(number: number): void {
    this.#courses.delete(number)
    this.#show(this.list.filter((one) => one.number !== number))
  }

  #order(
    file: File,
    choices: Choices,
    { likeEarlier, isHeld = false }: { likeEarlier?: LikeEarlier; isHeld?: boolean },
  ): void {
    const number = this.#count++
    const isAgain = likeEarlier !== undefined
    this.#courses.set(number, { stop: new AbortController(), likeEarlier })
    this.#show([...this.list, { number, file, choices, isOwn: false, isAgain, isHeld, state: 'waiting', progress: 0 }])
    // Checked at once, not when the upload begins: a person who dropped twenty files learns of the wrong ones now.
    this.#check(number)
    this.#queue(number, {})
  }

  #check(number: number): void {
    const [upload, course] = [this.#upload(number), this.#courses.get(number)]
    if (!upload || !course) return
    const { file, choices } = upload
    const check = checkFile(this.#page.client, choices.workflow, file).catch(() => undefined)
    course.check = check
    void check.then((problem) => {
      if (!problem || course.check !== check) return
      course.stop.abort()
      this.#change(number, { state: 'refused', problem })
      this.#page.onRefused(file, problem)
    })
  }

  #queue(number: number, facts: Partial<Upload>): void {
    const course = this.#courses.get(number)
    if (!course) return
    course.stop = new AbortController()
    const { signal } = course.stop
    this.#change(number, { ...facts, state: 'waiting', progress: 0, problem: undefined })
    this.#last = this.#last.then(() => this.#send(number, course, signal))
  }

  async #send(number: number, course: Course, signal: AbortSignal): Promise<void> {
    const file = this.#upload(number)?.file
    if (!file) return
    const show = (facts: Partial<Upload>) => this.#change(number, facts)
    const attempt = async (step: () => Promise<void>) => {
      try {
        await step()
      } catch (error) {
        if (!signal.aborted) this.#fail(number, error)
      }
    }
    await attempt(async () => {
      await course.check
      signal.throwIfAborted()
      const { downloadUrl } = await overLostConnections(signal, {
        attempt: () =>
          this.#page.client.upload(file, {
            signal,
            onProgress: ({ bytes }) => show({ state: 'sending', progress: file.size > 0 ? bytes / file.size : 1 }),
            onInterrupted: () => show({ state: 'disconnected' }),
          }),
        onLost: () => show({ state: 'disconnected', progress: 0 }),
      })
      const made = attempt(() => this.#make(number, course, signal, downloadUrl))
      // An upload that is held back must not make others wait.
      if (!this.#upload(number)?.isHeld) await made
    })
  }

  async #make(number: number, course: Course, signal: AbortSignal, inputUrl: string): Promise<void> {
    const { client } = this.#page
    while (this.#upload(number)?.isHeld) await new Promise<void>((resolve) => (course.release = resolve))
    await course.check
    signal.throwIfAborted()
    const { id } = await overLostConnections(signal, {
      attempt: async () => client.createJob(await this.#job(number, course, inputUrl), { signal }),
      onLost: () => this.#change(number, { state: 'disconnected' }),
    })
    const upload = this.#upload(number)
    if (!upload) return
    this.made.set(id, upload)
    this.#drop(number)
    this.#page.onCreated(id, upload.file)
  }

  /** The request to make once the file is uploaded, with the choices as they are then. */
  async #job(number: number, { likeEarlier }: Course, inputUrl: string): Promise<NewJob> {
    if (likeEarlier) return { ...likeEarlier, params: { ...likeEarlier.params, inputUrl } }
    const { choices, file } = this.#upload(number) ?? { choices: this.#page.choices, file: { name: '' } }
    const { workflow, batchName, settings } = choices
    const params = paramsOf(await paramFields(this.#page.client, workflow), settings[workflow] ?? {})
    return { workflow, name: file.name.slice(0, 255) || 'song', batchName, params: { inputUrl, ...params } }
  }

  #fail(number: number, error: unknown): void {
    const upload = this.#upload(number)
    if (!upload) return
    const refusals = upload.isAgain ? undefined : paramRefusals(error)
    this.#change(number, { state: 'failed', problem: explain(error), refusals })
    if (refusals && !upload.isOwn) this.#page.onParamsRefused(upload.choices.workflow, refusals)
  }
}

/** Why the service refused params of a job. */
function paramRefusals(error: unknown): Refusals | undefined {
  if (!ClientError.is(error)) return undefined
  const refused = error.errors.filter(({ path }) => path.startsWith('params.'))
  return refused.length > 0
    ? Object.fromEntries(refused.map(({ path, message }) => [path.slice('params.'.length), message]))
    : undefined
}
