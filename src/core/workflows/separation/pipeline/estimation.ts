import type { AudioStream } from '../../../media/dsp/audio-stream.js'
import { OverlapAdd } from './overlap-add.js'
import { segments, type Segment } from '../../../media/dsp/segment.js'
import { FloatPlanes } from '../../../media/dsp/float-planes.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import type { Architecture, NetworkRun, TrackStatistics } from '../architectures/architecture.js'
import type { StemName, Stems } from '../../../models/stems.js'
import type { Network } from '../../../models/session/network.js'
import type { KeptSegments } from './kept-segments.js'
import { RunBatch } from './run-batch.js'

/** What is needed to estimate the stems of one stream. */
export interface Estimator {
  architecture: Architecture
  /** The networks that the architecture was made for. */
  networks: readonly Network[]
  statistics?: TrackStatistics
  /** Segments per network run, if the networks support batches. Default: 1. */
  batch?: number
  /**
   * Segments that earlier runs finished, and what keeps later ones. Default: every segment is estimated, none is kept.
   */
  kept?: KeptSegments
}

/** Time spent in each part, in milliseconds. The networks run in parallel, so the sum exceeds the elapsed time. */
export interface PipelineTimings {
  decode: number
  dsp: number
  network: number
  write: number
}

export interface EstimationContext {
  /** Stems to return; each is one of the architecture's, or the complement of its `accompaniments`. */
  targets: readonly StemName[]
  timings: PipelineTimings
  signal?: AbortSignal
}

/** A block of estimated stems with the mixture. Valid until the next one is requested. */
export interface StemBlock {
  sampleCount: number
  stems: Stems
  mixture: Float32Array[]
}

interface Work {
  segments: Segment[]
  /** Absent: the segments were kept. */
  batch?: RunBatch
  runs: Promise<NetworkRun>[]
}

/** Batches submitted to the networks: one running and one queued, so that a network never waits for this thread. */
const maxInFlight = 2

/**
 * Separates a stereo stream at the architecture's sample rate, segment by segment, in bounded memory. While the
 * networks process one segment, this thread finishes the previous one and prepares the next. When the generator ends,
 * no run is in progress.
 *
 * @throws the signal's reason; the signal is checked between segments
 */
export async function* estimateStems(
  stream: AudioStream,
  estimator: Estimator,
  { targets, timings, signal }: EstimationContext,
): AsyncGenerator<StemBlock, void, void> {
  const { architecture, networks, statistics, batch = 1, kept } = estimator
  const groupSize = architecture.batchAxis === undefined ? 1 : batch
  const pool = new FloatPool()
  const overlapAdd = new OverlapAdd()
  if (kept?.state) overlapAdd.restore(kept.state)
  const complement = new VocalsComplement(architecture, targets)
  const inFlight: Work[] = []

  const isKept = (segments: Segment[]) => segments[0]!.index < (kept?.count ?? 0)

  const start = (group: Segment[]): Work => {
    if (isKept(group)) return { segments: group, runs: [] }
    const prepared = timed(timings, 'dsp', () =>
      RunBatch.of(
        group.map((segment) => architecture.prepare(segment, statistics)),
        architecture.batchAxis,
        pool,
      ),
    )
    const runs = prepared.runs.map(async ({ network, feeds, fetches }) => {
      const result = await networks[network]!.run(feeds, fetches)
      timings.network += result.runMs
      return { network, feeds: result.feeds, fetches: result.fetches }
    })
    // Awaited later; until then a rejection must not count as unhandled.
    for (const run of runs) run.catch(() => undefined)
    return { segments: group, batch: prepared, runs }
  }

  async function* finishOldest(): AsyncGenerator<StemBlock> {
    const { segments: group, batch: prepared, runs } = inFlight[0]!
    const done = await Promise.all(runs)
    inFlight.shift()
    signal?.throwIfAborted()
    const separated = timed(timings, 'dsp', () => prepared?.split(done))
    for (const [index, segment] of group.entries()) {
      const finished = separated
        ? timed(timings, 'dsp', () => overlapAdd.add(architecture.collect(segment, separated[index]!, statistics)))
        : await kept?.read?.(segment.index)
      if (!finished) throw new Error(`segment ${segment.index} was neither kept nor estimated`)
      if (separated) {
        await kept?.note?.(segment.index, finished)
        if (index === group.length - 1) await kept?.keepIfDue?.(() => overlapAdd.state)
      }
      const block = timed(timings, 'dsp', () => {
        const { start: from, sampleCount, stems } = finished
        const offset = from - segment.start
        return complement.completed({
          sampleCount,
          stems,
          mixture: segment.planes.map((plane) => plane.subarray(offset, offset + sampleCount)),
        })
      })
      if (block.sampleCount > 0) yield block
      if (separated && index === group.length - 1) await kept?.consumed?.(segment.index, () => overlapAdd.state)
      for (const plane of segment.planes) pool.give(plane)
    }
  }

  const source = segments(stream.blocks, architecture.geometry, stream.channelCount, pool, {
    firstIndex: kept && !kept.read ? kept.count : 0,
    firstSample: stream.firstSample,
  })
  let group: Segment[] = []
  try {
    for (;;) {
      const startedAt = performance.now()
      const next = await source.next()
      timings.decode += performance.now() - startedAt
      signal?.throwIfAborted()
      if (next.done) break
      group.push(next.value)
      if (group.length < groupSize) continue
      inFlight.push(start(group))
      group = []
      if (inFlight.length === maxInFlight) yield* finishOldest()
    }
    if (group.length > 0) inFlight.push(start(group))
    while (inFlight.length > 0) yield* finishOldest()
  } finally {
    await source.return()
    await Promise.allSettled(inFlight.flatMap(({ runs }) => runs))
  }
}

function timed<T>(timings: PipelineTimings, part: keyof PipelineTimings, work: () => T): T {
  const startedAt = performance.now()
  const result = work()
  timings[part] += performance.now() - startedAt
  return result
}

/** Derives the vocals for a model that only estimates the accompaniments: the mixture minus these. */
class VocalsComplement {
  readonly #isNeeded: boolean
  readonly #scratch = new FloatPlanes()

  constructor({ stems }: Architecture, targets: readonly StemName[]) {
    this.#isNeeded = targets.includes('vocals') && !stems.includes('vocals')
  }

  completed(block: StemBlock): StemBlock {
    const rest = block.stems.accompaniments
    if (!this.#isNeeded || rest === undefined) return block
    return { ...block, stems: { ...block.stems, vocals: this.#scratch.difference(block.mixture, rest) } }
  }
}
