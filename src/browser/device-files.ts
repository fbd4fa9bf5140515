import { fileWriter } from '../core/media/encode/file-writer.js'
import type { PcmFormat } from '../core/media/encode/pcm-encoder.js'
import { openPcmWriter } from '../core/media/encode/pcm-writer.js'
import { wavContainer } from '../core/media/encode/wav-container.js'
import { type StemFile, StemFiles } from '../core/workflows/separation/stem-files.js'
import { type DeviceStem, deviceStems } from './messages.js'

/** Opens WAV files whose content appears when they are closed; until then, the browser keeps it elsewhere. */
export async function openDeviceFiles(
  handles: Record<DeviceStem, FileSystemFileHandle>,
  { sampleRate, format }: { sampleRate: number; format: PcmFormat },
): Promise<StemFiles> {
  return await StemFiles.open(deviceStems.map((stem) => openFile(stem, handles[stem], { sampleRate, format })))
}

async function openFile(
  stem: DeviceStem,
  handle: FileSystemFileHandle,
  { sampleRate, format }: { sampleRate: number; format: PcmFormat },
): Promise<StemFile> {
  const stream = await handle.createWritable()
  const file = fileWriter({
    // The writer reuses its memory once the promise has resolved; the stream copies the content before that.
    write: (content, position) => stream.write({ type: 'write', position, data: content as Uint8Array<ArrayBuffer> }),
    close: () => stream.close(),
  })
  const options = { sampleRate, channels: 2, format }
  const writer = await openPcmWriter(file, wavContainer(options), options)
  return {
    stem,
    path: handle.name,
    encoder: { ...writer, abandon: () => stream.abort() },
    publish: () => Promise.resolve(),
    remove: () => Promise.resolve(),
  }
}
