import { trustedScript } from '../../browser/trusted-script.js'
import { ClientError, type Job } from '../../client/client.js'
import type { Peaks } from '../../client/job.js'
import type { Client, SongClient } from '../service/page-client.js'
import { resultFiles } from '../sources/result-files.js'
import { baseUrl, keepsSongs, offlineMark } from '../session/session.js'
import { isAudio } from '../words/stem-names.js'

/** A song kept on this device, without its files. */
export interface OfflineSong {
  job: Job
  peaks: Record<string, Peaks>
  bytes: number
}

/** Songs play offline only for this long: without the service, it is unknown whether the key still works. */
export const offlineDays = 7
const dayMs = 24 * 3_600_000

const songsName = `stemwork songs ${baseUrl}`
const pageName = `stemwork page ${baseUrl}`
const pageAddress = `${baseUrl}/console`
const addressOf = (id: string, name = '') => `${pageAddress}/kept/${id}/${name}`

/** Browsers offer this on https and on localhost. */
export const canKeep = 'caches' in globalThis && 'serviceWorker' in navigator

/** Safari before 17 lacks parts of it. */
const storage: Partial<StorageManager> | undefined = navigator.storage

export class NoRoom extends Error {}

/** Storage that is allowed and used, as far as the browser reports it. */
export async function storageRoom(): Promise<StorageEstimate> {
  return (await storage?.estimate?.()) ?? {}
}

/** Keeps the stems of a song, and the page that plays them. @throws NoRoom */
export async function keepOffline(
  client: Client,
  job: Job,
  { signal, onProgress }: { signal: AbortSignal; onProgress(share: number): void },
): Promise<void> {
  const files = resultFiles(client, job)
  const isSound = (name: string) => isAudio(files.storedName(name))
  const names = files.names.filter((name) => isSound(name) || name === 'analysis')
  const bytes = names.reduce((sum, name) => sum + (files.bytes(name) ?? 0), 0)
  const { quota = Infinity, usage = 0 } = await storageRoom()
  if (bytes > quota - usage) throw new NoRoom()
  // Else the browser may delete it when storage is short. Not awaited: Firefox asks the person, who may not answer.
  void storage?.persist?.().catch(() => {})
  const songs = await caches.open(songsName)
  try {
    await keepPage()
    const peaks: OfflineSong['peaks'] = {}
    let done = 0
    for (const name of names) {
      const { stream } = await client.download(await files.fresh(name), { signal })
      const counted = stream.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, controller) {
            onProgress(Math.min(1, (done += chunk.byteLength) / Math.max(1, bytes)))
            controller.enqueue(chunk)
          },
        }),
      )
      await songs.put(addressOf(job.id, name), new Response(counted))
      if (!isSound(name)) continue
      // If the service cannot measure the file, it is played anyway.
      const measured = await client.peaks(job.id, name, { signal }).catch((error: unknown) => {
        if (!ClientError.is(error) || error.status === undefined) throw error
      })
      if (measured) peaks[name] = measured
    }
    const result = Object.fromEntries(names.map((name) => [name, files.link(name)]))
    const song: OfflineSong = { job: { ...job, result, workflowParams: {} }, peaks, bytes: done }
    await songs.put(addressOf(job.id), Response.json(song))
    confirmed()
  } catch (error) {
    await forgetOffline(job.id)
    throw error instanceof DOMException && error.name === 'QuotaExceededError' ? new NoRoom() : error
  }
}

export async function offlineSongs(): Promise<OfflineSong[]> {
  if (!canKeep || !(await caches.has(songsName))) return []
  const songs = await caches.open(songsName)
  const found = (await songs.keys()).filter(({ url }) => url.endsWith('/'))
  return Promise.all(found.map(async (request) => (await (await songs.match(request))?.json()) as OfflineSong))
}

export async function forgetOffline(id: string): Promise<void> {
  const songs = await caches.open(songsName)
  for (const request of await songs.keys()) if (request.url.startsWith(addressOf(id))) await songs.delete(request)
  if ((await songs.keys()).length === 0) await forgetAllOffline()
}

export async function forgetAllOffline(): Promise<void> {
  localStorage.removeItem(offlineMark)
  if (!canKeep) return
  await Promise.all([caches.delete(songsName), caches.delete(pageName)])
  await (await navigator.serviceWorker.getRegistration(pageAddress))?.unregister()
}

/** Called when the service has let the person in: removes songs that it no longer has, and keeps the current page. */
export async function checkOffline(client: Client): Promise<void> {
  for (const { job } of await offlineSongs()) {
    const now = await client.getJob(job.id).catch((error: unknown) => {
      if (ClientError.is(error) && (error.status === 404 || error.status === 410)) return undefined
      throw error
    })
    if (!now?.result) await forgetOffline(job.id)
  }
  if (!keepsSongs()) return
  confirmed()
  await keepPage()
}

/** Whether the service has let the person in recently; if not, removes the kept songs. */
export async function isConfirmed(): Promise<boolean> {
  const at = Number(localStorage.getItem(offlineMark))
  if (Date.now() - at < offlineDays * dayMs) return true
  await forgetAllOffline()
  return false
}

function confirmed(): void {
  localStorage.setItem(offlineMark, String(Date.now()))
}

/** Keeps all parts of the page, for the service worker that answers without a network. */
async function keepPage(): Promise<void> {
  const answer = await fetch(`${pageAddress}/parts`)
  const parts = (await answer.json()) as string[]
  const page = await caches.open(pageName)
  await page.addAll([pageAddress, ...parts.map((part) => `${pageAddress}/${part}`)])
  const script = trustedScript(`${pageAddress}/offline-worker.js`)
  await navigator.serviceWorker.register(script, { scope: pageAddress })
}

/** Answers for a kept song as the service would. */
export function offlineClient({ job, peaks }: OfflineSong): SongClient {
  const gone = () => Promise.reject(new Error('This is not kept on this device.'))
  const blobs = new Map<string, Promise<Blob>>()
  const blobOf = (name: string) => {
    const known = blobs.get(name) ?? caches.match(addressOf(job.id, name)).then((kept) => kept?.blob() ?? gone())
    blobs.set(name, known)
    return known
  }
  return {
    getJob: async () => job,
    peaks: async (_, name) => peaks[name] ?? (await gone()),
    waitForJob: async () => job,
    growing: gone,
    growingPeaks: gone,
    async download(url, { range } = {}) {
      const name = Object.entries(job.result ?? {}).find(([, link]) => link === url)?.[0] ?? ''
      const whole = await blobOf(name)
      const part = range ? whole.slice(range.start, range.end === undefined ? undefined : range.end + 1) : whole
      const facts = { bytes: part.size, totalBytes: whole.size, contentType: whole.type, fileName: name }
      return { ...facts, stream: part.stream(), blob: async () => part }
    },
  }
}
