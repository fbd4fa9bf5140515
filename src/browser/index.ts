import { StemworkError } from '../core/engine/errors.js'
import type { PcmFormat } from '../core/media/encode/pcm-encoder.js'
import type { SeparatedTrack } from '../core/workflows/separation/separate-track.js'
import type { SeparationProgress } from '../core/workflows/separation/separate-track.js'
import { type DeviceRequest, type DeviceStem, deviceStems, type FromWorker, type ToWorker } from './messages.js'
import { canSeparate } from './can-separate.js'
import { addressesOf, type DeviceAssets, notLoaded, openWorker } from './assets.js'
import { createResultsFolder, type ResultsFolder } from './results-folder.js'

export { canSeparate } from './can-separate.js'
export { StemworkError } from '../core/engine/errors.js'
export type { SeparationProgress } from '../core/workflows/separation/separate-track.js'
export type { DeviceAssets } from './assets.js'
export { createLiveNode, type LiveNode, type LiveNodeOptions } from './live-node.js'
export { type LiveStems, type LiveSource, separateStream, type LiveStreamOptions } from './live-stream.js'
export type { DeviceStem } from './messages.js'

/** @experimental */
export interface DeviceSeparationOptions {
  /** Cancels the separation, within a second or two, and removes what was written. */
  signal?: AbortSignal
  onProgress?(progress: SeparationProgress): void
  /**
   * A folder that the user chose (`showDirectoryPicker`), to write the files into. Default: the browser's private file
   * system, from where the page offers them as downloads.
   */
  folder?: FileSystemDirectoryHandle
  /** Samples of the files: 16- or 24-bit integers, or 32-bit floats. Default: `'16'`. */
  format?: PcmFormat
  /** Rejects longer audio with `BAD_INPUT`, reason `too_long`. */
  maxSeconds?: number
  assets?: DeviceAssets
}

/** @experimental */
export interface DeviceSeparation extends SeparatedTrack {
  /** WAV files on the disk. Without `folder`, they can be read until `remove` is called or the page is closed. */
  stems: Record<DeviceStem, File>
  /** Parts of a damaged file that were lost. */
  warnings: readonly string[]
  /** Removes the files. */
  remove(): Promise<void>
}

/**
 * Separates an audio file in a worker of this page, with the bundled model. Nothing is uploaded, and memory does not
 * grow with the length of the audio.
 *
 * @throws StemworkError `BAD_INPUT` when the file cannot be used, `MODEL_UNAVAILABLE` when the model cannot be loaded,
 * `MISSING_DEPENDENCY` in a browser or a page that lacks what is needed; the signal's reason
 *
 * @experimental
 */
export async function separate(file: Blob, options: DeviceSeparationOptions = {}): Promise<DeviceSeparation> {
  const { signal, format = '16', maxSeconds, assets = {} } = options
  signal?.throwIfAborted()
  if (!canSeparate()) throw new StemworkError('MISSING_DEPENDENCY', notSupported)
  const target = options.folder ? chosenFolder(options.folder) : await createResultsFolder()
  const names = deviceStems.map((stem) => fileName(file, stem))
  const made: string[] = []
  try {
    const handles = {} as Record<DeviceStem, FileSystemFileHandle>
    for (const [index, stem] of deviceStems.entries()) {
      const name = names[index] ?? stem
      // An existing file keeps its content until the new one is complete, so a failure must not remove it.
      if (!(await hasFile(target.folder, name))) made.push(name)
      handles[stem] = await target.folder.getFileHandle(name, { create: true })
    }
    const request: DeviceRequest = {
      file,
      handles,
      format,
      maxSeconds,
      ...addressesOf(assets),
    }
    const separated = await inWorker(openSeparationWorker(assets.worker), request, options)
    const stems = {} as Record<DeviceStem, File>
    for (const stem of deviceStems) stems[stem] = await handles[stem].getFile()
    return { ...separated, stems, remove: () => target.remove(names) }
  } catch (error) {
    await target.remove(made)
    throw error
  }
}

const notSupported =
  'This page cannot separate on this device. It needs HTTPS (or localhost) and a browser with the File System API: ' +
  'Chrome or Edge 109, Firefox 114, Safari 26 or newer.'

function chosenFolder(folder: FileSystemDirectoryHandle): ResultsFolder {
  return {
    folder,
    async remove(names) {
      for (const name of names) await folder.removeEntry(name).catch(() => undefined)
    },
  }
}

async function hasFile(folder: FileSystemDirectoryHandle, name: string): Promise<boolean> {
  return await folder.getFileHandle(name).then(
    () => true,
    () => false,
  )
}

function fileName(file: Blob, stem: DeviceStem): string {
  const song = (file instanceof File ? file.name : '').replace(/\.[^.]*$/, '').replace(/[\\/:*?"<>|\p{Cc}]/gu, '_')
  return `${song.slice(0, mostNameCharacters) || 'audio'} - ${stem}.wav`
}

/** File systems limit names to 255 bytes. */
const mostNameCharacters = 60

function openSeparationWorker(address: DeviceAssets['worker']): Worker {
  // Bundlers look for exactly this expression.
  return openWorker(address, () => new Worker(new URL('./worker.js', import.meta.url), { type: 'module' }))
}

async function inWorker(
  worker: Worker,
  request: DeviceRequest,
  { signal, onProgress }: DeviceSeparationOptions,
): Promise<SeparatedTrack & { warnings: readonly string[] }> {
  const post = (message: ToWorker) => worker.postMessage(message)
  const cancel = () => post({ kind: 'cancel' })
  try {
    // The signal may have fired since the call.
    signal?.throwIfAborted()
    return await new Promise((resolve, reject) => {
      worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => {
        switch (data.kind) {
          case 'progress':
            // The worker may need a second or two to stop.
            return signal?.aborted ? undefined : onProgress?.(data.progress)
          case 'done':
            return resolve(data.separated)
          case 'canceled':
            return reject(signal?.reason)
          case 'failed':
            return reject(errorOf(data))
          default:
            return data satisfies never
        }
      })
      worker.addEventListener('error', ({ message }) => reject(notLoaded(new Error(message))))
      signal?.addEventListener('abort', cancel)
      post({ kind: 'separate', request })
    })
  } finally {
    signal?.removeEventListener('abort', cancel)
    worker.terminate()
  }
}

function errorOf({ code, reason, message, cause }: FromWorker & { kind: 'failed' }): StemworkError {
  return new StemworkError(code as StemworkError['code'], message, { reason: reason as StemworkError['reason'], cause })
}
