import type { PlayerTrack } from './player.js'

export interface MixOptions {
  /** 0..1 by the name of the track; one that is missing is not heard. */
  volumes: Record<string, number>
  /** Seconds. */
  from: number
  to: number
  signal: AbortSignal
  /** @param share 0..1 */
  onProgress(share: number): void
}

const pieceSeconds = 10
const headerBytes = 44

/**
 * The tracks as they are heard, as one 16-bit WAV file. It is written piece by piece into a `Blob`, which browsers keep
 * outside of the page's memory. Samples above full scale are clipped.
 */
export async function exportMix(tracks: readonly PlayerTrack[], options: MixOptions): Promise<Blob> {
  const { volumes, signal, onProgress } = options
  const heard = tracks.filter(({ name }) => (volumes[name] ?? 0) > 0)
  const sampleRate = tracks[0]?.source.sampleRate ?? 44_100
  const [first, end] = [Math.round(options.from * sampleRate), Math.round(options.to * sampleRate)]
  const pieces: Blob[] = [new Blob([wavHeader(sampleRate, end - first)])]
  for (let frame = first; frame < end; frame += pieceSeconds * sampleRate) {
    const count = Math.min(pieceSeconds * sampleRate, end - frame)
    const sum = [new Float32Array(count), new Float32Array(count)]
    for (const { name, source } of heard) {
      const planes = await source.read(frame, count, signal)
      sum.forEach((plane, channel) => add(plane, planes[Math.min(channel, planes.length - 1)], volumes[name] ?? 0))
    }
    signal.throwIfAborted()
    pieces.push(new Blob([integers(sum)]))
    onProgress(Math.min(1, (frame + count - first) / (end - first)))
  }
  return new Blob(pieces, { type: 'audio/wav' })
}

function add(sum: Float32Array, plane: Float32Array | undefined, volume: number): void {
  plane?.forEach((sample, index) => (sum[index] = (sum[index] ?? 0) + sample * volume))
}

function integers([left, right]: readonly Float32Array[]): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(2 * (left?.length ?? 0))
  const rounded = (sample: number) => Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_768)))
  left?.forEach((sample, index) => {
    samples[2 * index] = rounded(sample)
    samples[2 * index + 1] = rounded(right?.[index] ?? 0)
  })
  return samples
}

function wavHeader(sampleRate: number, frames: number): ArrayBuffer {
  const bytes = frames * 4
  const view = new DataView(new ArrayBuffer(headerBytes))
  const words: [number, string][] = [
    [0, 'RIFF'],
    [8, 'WAVE'],
    [12, 'fmt '],
    [36, 'data'],
  ]
  for (const [at, word] of words)
    for (let index = 0; index < word.length; index++) view.setUint8(at + index, word.charCodeAt(index))
  view.setUint32(4, headerBytes - 8 + bytes, true)
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true)
  view.setUint16(22, 2, true)
  view.setUint32(24, sampleRate, true)
  view.setUint32(28, sampleRate * 4, true)
  view.setUint16(32, 4, true)
  view.setUint16(34, 16, true)
  view.setUint32(40, bytes, true)
  return view.buffer
}
