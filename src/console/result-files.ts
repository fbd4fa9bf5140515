import { ClientError, type Client } from '../client/client.js'
import type { RangeReader } from './pcm-source.js'

/** The files of a job. Their links end after a while; then the job is asked for new ones. */
export class ResultFiles {
  readonly #client: Client
  readonly #id: string
  #links: Record<string, string>

  constructor(client: Client, id: string, links: Record<string, string>) {
    this.#client = client
    this.#id = id
    this.#links = links
  }

  /** Outputs that are here, not in the client's own storage. */
  get names(): string[] {
    return Object.keys(this.#links).filter((name) => URL.canParse(this.#link(name)))
  }

  fileName(name: string): string {
    return new URL(this.#link(name)).pathname.split('/').at(-1) ?? name
  }

  async fresh(name: string): Promise<string> {
    this.#links = (await this.#client.getJob(this.#id)).result ?? this.#links
    return this.#link(name)
  }

  #link(name: string): string {
    const link = this.#links[name]
    if (link === undefined) throw new RangeError(`The job has no result "${name}".`)
    return link
  }

  reader(name: string): RangeReader {
    const read = async (range: { start: number; end?: number }, signal: AbortSignal) => {
      const file = await this.#client.download(this.#link(name), { range, signal })
      return (await file.blob()).arrayBuffer()
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
