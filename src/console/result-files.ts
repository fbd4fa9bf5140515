import { ClientError, type Job } from '../client/client.js'
import type { SongClient } from './page-client.js'
import type { RangeReader } from './pcm-source.js'

/** The files of a job. Their links expire after a while; then new ones are requested. */
export class ResultFiles {
  readonly jobId: string
  readonly #client: SongClient
  #links: Record<string, string>
  readonly #files: NonNullable<Job['files']>

  constructor(client: SongClient, job: Pick<Job, 'id' | 'result' | 'files'>) {
    this.#client = client
    this.jobId = job.id
    this.#links = job.result ?? {}
    this.#files = job.files ?? {}
  }

  /** Outputs that are here, not in the client's own storage. */
  get names(): string[] {
    return Object.keys(this.#links).filter((name) => URL.canParse(this.link(name)))
  }

  /** Name of the file in the service's store. */
  storedName(name: string): string {
    return new URL(this.link(name)).pathname.split('/').at(-1) ?? name
  }

  /** Name under which a person keeps the file. */
  fileName(name: string): string {
    return this.#files[name]?.fileName ?? this.storedName(name)
  }

  bytes(name: string): number | undefined {
    return this.#files[name]?.bytes
  }

  link(name: string): string {
    const link = this.#links[name]
    if (link === undefined) throw new RangeError(`The job has no result "${name}".`)
    return link
  }

  /** For browsers that save a file dragged out of them: type, name and link. */
  draggedAs(name: string): string {
    const type = this.#files[name]?.contentType ?? 'application/octet-stream'
    return `${type}:${this.fileName(name).replaceAll(':', '-')}:${this.link(name)}`
  }

  async fresh(name: string): Promise<string> {
    this.#links = (await this.#client.getJob(this.jobId)).result ?? this.#links
    return this.link(name)
  }

  async json<Content>(name: string, signal: AbortSignal): Promise<Content> {
    const { bytes } = await this.reader(name)({ start: 0 }, signal)
    return JSON.parse(new TextDecoder().decode(bytes)) as Content
  }

  reader(name: string): RangeReader {
    const read = async (range: { start: number; end?: number }, signal: AbortSignal) => {
      const file = await this.#client.download(this.link(name), { range, signal })
      const bytes = await (await file.blob()).arrayBuffer()
      return { bytes, totalBytes: this.bytes(name) ?? file.totalBytes ?? bytes.byteLength }
    }
    return async (range, signal) => {
      try {
        return await read(range, signal)
      } catch (error) {
        if (!ClientError.is(error) || error.status !== 403) throw error
        await this.fresh(name)
        return read(range, signal)
      }
    }
  }
}
