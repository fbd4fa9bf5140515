import { ClientError, type Job } from '../../client/client.js'
import type { SongClient } from '../service/page-client.js'
import type { RangeReader } from './pcm-source.js'

export type ResultFiles = ReturnType<typeof resultFiles>

/** The files of a job. Their links expire after a while; then new ones are requested. */
export function resultFiles(client: SongClient, { id: jobId, result, files }: Pick<Job, 'id' | 'result' | 'files'>) {
  let links: Record<string, string> = result ?? {}
  const link = (name: string): string => {
    const found = links[name]
    if (found === undefined) throw new RangeError(`The job has no result "${name}".`)
    return found
  }
  const storedName = (name: string) => new URL(link(name)).pathname.split('/').at(-1) ?? name
  const fileName = (name: string) => files?.[name]?.fileName ?? storedName(name)
  const fresh = async (name: string) => {
    links = (await client.getJob(jobId)).result ?? links
    return link(name)
  }
  const reader = (name: string): RangeReader => {
    const read = async (range: { start: number; end?: number }, signal: AbortSignal) => {
      const file = await client.download(link(name), { range, signal })
      const bytes = await (await file.blob()).arrayBuffer()
      return { bytes, totalBytes: files?.[name]?.bytes ?? file.totalBytes ?? bytes.byteLength }
    }
    return async (range, signal) => {
      try {
        return await read(range, signal)
      } catch (error) {
        if (!ClientError.is(error) || error.status !== 403) throw error
        await fresh(name)
        return read(range, signal)
      }
    }
  }
  return {
    jobId,
    link,
    fresh,
    reader,
    /** Name of the file in the service's store. */
    storedName,
    /** Name under which a person keeps the file. */
    fileName,
    /** Outputs in the service's storage, not in the client's own. */
    names: Object.keys(links).filter((name) => URL.canParse(link(name))),
    bytes: (name: string) => files?.[name]?.bytes,
    /** For browsers that save a file dragged out of them: type, name and link. */
    draggedAs(name: string): string {
      const type = files?.[name]?.contentType ?? 'application/octet-stream'
      return `${type}:${fileName(name).replaceAll(':', '-')}:${link(name)}`
    },
    async json<Content>(name: string, signal: AbortSignal): Promise<Content> {
      const { bytes } = await reader(name)({ start: 0 }, signal)
      return JSON.parse(new TextDecoder().decode(bytes)) as Content
    },
  }
}
