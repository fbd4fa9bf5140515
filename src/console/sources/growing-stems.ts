import type { Job } from '../../client/client.js'
import type { SongClient } from '../service/page-client.js'
import type { PcmSource, RangeReader } from './pcm-source.js'
import { sampleAt } from './sample-at.js'
import type { Stem } from './stems.js'
import { frameBytes, type SampleLayout, sampleLayout, uncompressedSource } from './uncompressed-source.js'

/** Results that are written from start to end, by workflow. */
const growing: Record<string, readonly string[] | undefined> = {
  'service/stems-vocals-accompaniment': ['vocals', 'accompaniments'],
  'service/stems-4': ['vocals', 'drums', 'bass', 'other'],
}
/** New audio is shown in steps of this length, a whole number of the player's pieces. */
const stepSeconds = 4
const headBytes = 4096
/** More than any header of the service takes, so that the header is complete. */
const leastBytes = 256
const fullPeak = 128
/** Header bytes of peaks in the format of audiowaveform. */
const peaksHeaderBytes = 24

/** Whether stems of this workflow can be heard before they are done. */
export function isGrown(workflow: string): boolean {
  return growing[workflow] !== undefined
}

/** The stems of a song before any of them has begun. */
export function awaitedStems(workflow: string, { sampleRate, frames }: PcmSource): Stem[] {
  const none = new Float32Array(0)
  return (growing[workflow] ?? []).map((name) => ({
    name,
    source: { isGrowing: true, sampleRate, frames: 0, promisedFrames: frames, read: async () => [none] },
    peaks: new Promise(() => {}),
    grownPeaks: { lowest: none, highest: none, perSecond: 1 },
  }))
}

interface Growth {
  signal: AbortSignal
  /** Called when there is more to play. */
  onGrown(): void
}

/**
 * Opens the stems of a running job, as far as they are made. Resolves when the job has begun to write them. Empty where
 * they cannot be played before the end: for other workflows, and for files whose samples have no fixed positions.
 */
export async function openGrowingStems(client: SongClient, job: Job, { signal, onGrown }: Growth): Promise<Stem[]> {
  const names = growing[job.workflow.id] ?? []
  const stems: GrowingStem[] = []
  // In sequence: until one has begun, no other is requested.
  for (const name of names) {
    const read: RangeReader = async (range, ending) => {
      const part = await client.growing(job.id, name, { range, signal: ending })
      return { bytes: await (await part.blob()).arrayBuffer(), totalBytes: Infinity }
    }
    await read({ start: leastBytes, end: leastBytes }, signal)
    const layout = sampleLayout(new DataView((await read({ start: 0, end: headBytes - 1 }, signal)).bytes))
    if (!layout) return []
    const readPeaks = async (start: number) => {
      const part = await client.growingPeaks(job.id, name, { range: { start }, signal })
      return (await part.blob()).arrayBuffer()
    }
    // Older versions of the service have no peaks.
    const head = await readPeaks(0).catch(() => new ArrayBuffer(peaksHeaderBytes))
    stems.push(growingStem({ name, source: growingSource(read, layout, head), layout }, head, readPeaks))
  }
  void follow(client, job.id, { stems, signal, onGrown })
  return stems
}

/** Product of two fields in the header of the peaks: samples per peak, and how many peaks there will be. */
function promisedFrames(head: ArrayBuffer): number | undefined {
  const header = new DataView(head)
  return header.getUint32(12, true) * header.getUint32(16, true) || undefined
}

function growingSource(read: RangeReader, layout: SampleLayout, head: ArrayBuffer): GrowingStem['source'] {
  const file = uncompressedSource(read, { ...layout, frames: Infinity })
  return {
    isGrowing: true,
    sampleRate: layout.sampleRate,
    promisedFrames: promisedFrames(head),
    frames: 0,
    read(fromFrame, frames, signal) {
      return file.read(fromFrame, Math.min(frames, this.frames - fromFrame), signal)
    },
  }
}

interface GrowingStem extends Stem {
  source: PcmSource & { frames: number }
  layout: SampleLayout
  /** Reads the peaks of newly arrived samples. */
  outline(): Promise<void>
}

/** @param head the header of the peaks, and the first peaks, which came with it */
function growingStem(
  { name, source, layout }: Pick<GrowingStem, 'name' | 'source' | 'layout'>,
  head: ArrayBuffer,
  readPeaks: (start: number) => Promise<ArrayBuffer>,
): GrowingStem {
  const perSecond = layout.sampleRate / new DataView(head).getUint32(12, true)
  let start = peaksHeaderBytes
  const add = (bytes: ArrayBuffer) => {
    start += bytes.byteLength
    const pairs = new Int8Array(bytes)
    const every = (offset: number, known: Float32Array = new Float32Array(0)) => {
      const all = new Float32Array(known.length + Math.floor(pairs.length / 2))
      all.set(known)
      for (let index = known.length; index < all.length; index++)
        all[index] = sampleAt(pairs, 2 * (index - known.length) + offset) / fullPeak
      return all
    }
    const { lowest, highest } = stem.grownPeaks ?? {}
    stem.grownPeaks = { lowest: every(0, lowest), highest: every(1, highest), perSecond }
  }
  const stem: GrowingStem = {
    name,
    source,
    layout,
    // Never resolves: the file is measured as a whole when it is complete.
    peaks: new Promise(() => {}),
    async outline() {
      if (stem.grownPeaks) add(await readPeaks(start))
    },
  }
  if (perSecond < Infinity) add(head.slice(peaksHeaderBytes))
  return stem
}

/** Lets all stems grow together, until the job ends or the signal fires. */
async function follow(
  client: SongClient,
  jobId: string,
  { stems, signal, onGrown }: Growth & { stems: readonly GrowingStem[] },
): Promise<void> {
  const framesThere = async ({ name, source: { frames, sampleRate }, layout }: GrowingStem) => {
    const { dataStart } = layout
    const start = dataStart + (frames + stepSeconds * sampleRate) * frameBytes(layout) - 1
    // Waits until this byte exists. Only the size of the rest is used.
    const rest = await client.growing(jobId, name, { range: { start }, signal })
    await rest.stream.cancel()
    return Math.floor((start + (rest.bytes ?? 1) - dataStart) / frameBytes(layout))
  }
  try {
    while (!signal.aborted && stems.length > 0) {
      const frames = Math.min(...(await Promise.all(stems.map(framesThere))))
      for (const { source } of stems) {
        const stepFrames = stepSeconds * source.sampleRate
        source.frames = Math.floor(frames / stepFrames) * stepFrames
      }
      onGrown()
      await Promise.all(stems.map((stem) => stem.outline()))
      onGrown()
    }
  } catch {
    // No more arrives: the job has ended, or continues elsewhere. The samples so far can still be played.
  }
}
