import type { Job } from '../client/client.js'
import type { Client } from './page-client.js'
import type { PcmSource, RangeReader } from './pcm-source.js'
import type { Stem } from './stems.js'
import { frameBytes, type SampleLayout, sampleLayout, uncompressedSource } from './uncompressed-source.js'

/** Results that are written from their beginning to their end, by workflow. */
const growing: Record<string, readonly string[] | undefined> = {
  'service/stems-vocals-accompaniment': ['vocals', 'accompaniments'],
  'service/stems-4': ['vocals', 'drums', 'bass', 'other'],
}
/** More is shown in steps of this length, in which the player's pieces are whole. */
const stepSeconds = 4
const headBytes = 4096
/** More than a header of the service has, so that all of it is there. */
const leastBytes = 256

interface Growth {
  signal: AbortSignal
  /** There is more to play. */
  onGrown(): void
}

/**
 * The stems of a running job, as far as they are made. Empty where they cannot be played before the end: for other
 * workflows, and for files whose samples have no fixed positions. Resolves when the job has begun to write them.
 */
export async function openGrowingStems(client: Client, job: Job, { signal, onGrown }: Growth): Promise<Stem[]> {
  const names = growing[job.workflow.id] ?? []
  const sources: GrowingSource[] = []
  // One after the other: while nothing is there yet, only one is asked for.
  for (const name of names) {
    const read: RangeReader = async (range, ending) => {
      const part = await client.growing(job.id, name, { range, signal: ending })
      return { bytes: await (await part.blob()).arrayBuffer(), totalBytes: Infinity }
    }
    await read({ start: leastBytes, end: leastBytes }, signal)
    const layout = sampleLayout(new DataView((await read({ start: 0, end: headBytes - 1 }, signal)).bytes))
    if (!layout) return []
    sources.push(new GrowingSource(read, layout))
  }
  void follow(client, job.id, { names, sources, signal, onGrown })
  // A waveform is measured when the file is complete.
  const peaks = new Promise<never>(() => {})
  return names.flatMap((name, index) => (sources[index] ? [{ name, source: sources[index], peaks }] : []))
}

class GrowingSource implements PcmSource {
  readonly isGrowing = true
  readonly sampleRate: number
  readonly dataStart: number
  readonly frameBytes: number
  frames = 0
  readonly #file: PcmSource

  constructor(read: RangeReader, layout: SampleLayout) {
    this.sampleRate = layout.sampleRate
    this.dataStart = layout.dataStart
    this.frameBytes = frameBytes(layout)
    this.#file = uncompressedSource(read, { ...layout, frames: Infinity })
  }

  read(fromFrame: number, frames: number, signal: AbortSignal): Promise<Float32Array<ArrayBuffer>[]> {
    return this.#file.read(fromFrame, Math.min(frames, this.frames - fromFrame), signal)
  }
}

/** Lets all stems grow together, until the job ends or the signal fires. */
async function follow(
  client: Client,
  jobId: string,
  { names, sources, signal, onGrown }: Growth & { names: readonly string[]; sources: readonly GrowingSource[] },
): Promise<void> {
  const stepFrames = stepSeconds * (sources[0]?.sampleRate ?? 0)
  const framesThere = async (source: GrowingSource, name: string) => {
    const { dataStart, frameBytes } = source
    const start = dataStart + (source.frames + stepFrames) * frameBytes - 1
    // Waits until this byte is there. What comes behind it is only counted.
    const rest = await client.growing(jobId, name, { range: { start }, signal })
    await rest.stream.cancel()
    return Math.floor((start + (rest.bytes ?? 1) - dataStart) / frameBytes)
  }
  try {
    while (!signal.aborted && sources.length > 0) {
      const frames = Math.min(...(await Promise.all(sources.map((one, index) => framesThere(one, names[index] ?? '')))))
      for (const source of sources) source.frames = Math.floor(frames / stepFrames) * stepFrames
      onGrown()
    }
  } catch {
    // There is no more of it: the job has ended, or goes on elsewhere. What was found can still be played.
  }
}
