import type { PcmSource } from './pcm.js'
import { openPcm } from './pcm-source.js'

/** The rate of the stems: nearly every model has it. */
const stemsRate = 44_100
/** Longer songs would take a hundred times as much memory to decode as a whole. */
const mostBytesAtOnce = 16e6
/** Read before and after a piece, for its resampling. */
const marginSeconds = 0.01

/**
 * Opens the song of a file on this device, at the rate of its stems. It plays until they are made, however long the
 * upload takes.
 *
 * @returns undefined for files that the browser cannot read piece by piece, unless they are short
 */
export async function openLocalSong(file: Blob, signal: AbortSignal): Promise<PcmSource | undefined> {
  const song = await openPcm(async ({ start, end = file.size - 1 }) => {
    const part = file.slice(start, end + 1)
    if (part.size > mostBytesAtOnce) throw new RangeError('It is too long to be decoded at once.')
    return { bytes: await part.arrayBuffer(), totalBytes: file.size }
  }, signal).catch(() => undefined)
  if (!song || song.frames === 0) return undefined
  return song.sampleRate === stemsRate ? song : resampled(song)
}

/** Resamples piece by piece, so that an hour takes no more memory than a minute. */
function resampled(song: PcmSource): PcmSource {
  const { sampleRate } = song
  const frames = Math.round((song.frames * stemsRate) / sampleRate)
  return {
    sampleRate: stemsRate,
    frames,
    async read(fromFrame, wanted, signal) {
      const count = Math.min(wanted, frames - fromFrame)
      if (count <= 0) return [new Float32Array(0)]
      const seconds = fromFrame / stemsRate
      const first = Math.max(0, Math.floor((seconds - marginSeconds) * sampleRate))
      const end = Math.ceil((seconds + count / stemsRate + marginSeconds) * sampleRate)
      const planes = await song.read(first, end - first, signal)
      const context = new OfflineAudioContext(planes.length, count, stemsRate)
      const buffer = context.createBuffer(planes.length, planes[0]?.length ?? 0, sampleRate)
      planes.forEach((plane, channel) => buffer.copyToChannel(plane, channel))
      const node = context.createBufferSource()
      node.buffer = buffer
      node.connect(context.destination)
      node.start(0, seconds - first / sampleRate)
      const made = await context.startRendering()
      return planes.map((_, channel) => made.getChannelData(channel))
    },
  }
}
