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
    return Object.keys(this.#links).filter((name) => URL.canParse(this.#links[name]))
  }

  fileName(name: string): string {
    return new URL(this.#links[name]).pathname.split('/').at(-1) ?? name
  }

  async fresh(name: string): Promise<string> {
    this.#links = (await this.#client.getJob(this.#id)).result ?? this.#links
    return this.#links[name]
  }

  reader(name: string): RangeReader {
    const read = async (range: { start: number; end?: number }, signal: AbortSignal) => {
      const file = await this.#client.download(this.#links[name], { range, signal })
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
