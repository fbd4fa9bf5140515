import { Dither } from '../../core/media/dsp/dither.js'
import type { AudioEncoder } from '../../core/media/encode/audio-encoder.js'
import { type FileWriter, fileWriter, type WritableBytes } from '../../core/media/encode/file-writer.js'
import { formatTable } from '../../core/media/encode/output-format.js'
import { openPcmWriter } from '../../core/media/encode/pcm-writer.js'
import { wavContainer } from '../../core/media/encode/wav-container.js'
import type { ExportFormat } from './export-formats.js'
import type { PlayerTrack } from '../player/player.js'
import { breath, type HeardMix, renderMix } from './rendered-mix.js'

/** Rendering's share of the progress; encoding has the rest. */
const renderingShare = 0.85

/** Mixes the tracks as they are heard into one file, attenuated as far as is needed to avoid clipping. */
export async function exportMix(
  tracks: readonly PlayerTrack[],
  { format, ...heard }: HeardMix & { format: ExportFormat },
): Promise<Blob> {
  const { signal, onProgress } = heard
  const { pieces, highest } = await renderMix(tracks, {
    ...heard,
    onProgress: (share) => onProgress(renderingShare * share),
  })
  const { bits, contentType } = formatTable[format]
  const steps = 2 ** ((bits ?? 24) - 1)
  // Leaves room for the dither; what already fits is not changed.
  const scale = highest > (steps - 1) / steps ? (steps - 3) / steps / highest : 1
  const noise = bits === 16 || bits === 24 ? new Dither(bits) : undefined
  const file = new BlobFile()
  const encoder = await openEncoder(fileWriter(file), format, tracks[0]?.source.sampleRate ?? 0)
  for (const [index, piece] of pieces.entries()) {
    const samples = new Float32Array(await piece.arrayBuffer())
    signal.throwIfAborted()
    if (scale < 1) samples.forEach((sample, at) => (samples[at] = sample * scale))
    const planes = [samples.subarray(0, samples.length / 2), samples.subarray(samples.length / 2)]
    await encoder.write(noise?.apply(planes) ?? planes)
    onProgress(renderingShare + ((1 - renderingShare) * (index + 1)) / pieces.length)
    await breath()
  }
  await encoder.close()
  return file.whole(contentType)
}

async function openEncoder(file: FileWriter, format: ExportFormat, sampleRate: number): Promise<AudioEncoder> {
  const shape = { sampleRate, channels: 2 }
  switch (format) {
    case 'flac24': {
      const { openFlacWriter } = await import('../../core/media/encode/flac-writer.js')
      const noSum = { update: () => undefined, digest: () => new Uint8Array(16) }
      return openFlacWriter(file, { ...shape, bits: 24 }, noSum)
    }
    case 'mp3': {
      const { openMp3Writer } = await import('../../core/media/encode/mp3-writer.js')
      return openMp3Writer(async () => file, shape)
    }
    default:
      return openPcmWriter(file, wavContainer({ ...shape, format }), { ...shape, format })
  }
}

class BlobFile implements WritableBytes {
  #parts: Blob[] = []
  #bytes = 0

  async write(content: Uint8Array, position: number): Promise<void> {
    const part = new Blob([content.slice()])
    if (position === this.#bytes) {
      this.#parts.push(part)
      this.#bytes += part.size
      return
    }
    const all = new Blob(this.#parts)
    this.#parts = [all.slice(0, position), part, all.slice(position + part.size)]
  }

  async close(): Promise<void> {}

  whole(type: string): Blob {
    return new Blob(this.#parts, { type })
  }
}
