import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { readAudio } from '../separation/tracks.js'

export interface SeparatedJob {
  id: string
  status: string
  result: Record<string, string>
  details?: Record<string, unknown>
}

export interface ServiceClient {
  ask(path: string, body?: unknown): Promise<Response>
  /** Uploads a file, waits for its job and downloads the stems, like a client. */
  separate(
    workflow: string,
    path: string,
    params?: Record<string, unknown>,
  ): Promise<{ job: SeparatedJob; stems: Record<string, Float32Array[]> }>
}

/** @param folder destination of the downloads */
export function serviceClient(baseUrl: string, key: string, folder: string): ServiceClient {
  const ask = (path: string, body?: unknown) => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    return fetch(baseUrl + path, { ...init, headers: { authorization: key, 'content-type': 'application/json' } })
  }
  const answer = async <Answer>(response: Promise<Response>) => (await (await response).json()) as Answer
  return {
    ask,
    async separate(workflow, path, params) {
      const { uploadUrl, downloadUrl } = await answer<{ uploadUrl: string; downloadUrl: string }>(ask('/upload'))
      expect((await fetch(uploadUrl, { method: 'PUT', body: new Uint8Array(await readFile(path)) })).status).toBe(200)
      const { id } = await answer<SeparatedJob>(
        ask('/job', { name: 'song', workflow, params: { inputUrl: downloadUrl, format: '32f', ...params } }),
      )
      let job: SeparatedJob
      do {
        await delay(200)
        job = await answer<SeparatedJob>(ask(`/job/${id}`))
      } while (job.status === 'QUEUED' || job.status === 'STARTED')
      expect(job.status, JSON.stringify(job)).toBe('SUCCEEDED')
      const stems: Record<string, Float32Array[]> = {}
      for (const [stem, url] of Object.entries(job.result)) {
        const file = join(folder, `${stem}.wav`)
        await writeFile(file, new Uint8Array(await (await fetch(url)).arrayBuffer()))
        stems[stem] = (await readAudio(file)).channels
      }
      return { job, stems }
    },
  }
}
