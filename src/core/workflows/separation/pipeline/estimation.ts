import type { AudioStream } from '../../../media/dsp/audio-stream.js'
import { type FinishedAudio, OverlapAdd } from './overlap-add.js'
import { segments, type Segment } from '../../../media/dsp/segment.js'
import { FloatPlanes } from '../../../media/dsp/float-planes.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import type { Architecture, NetworkRun, TrackStatistics } from '../architectures/architecture.js'
import type { StemName, Stems } from '../../../models/stems.js'
import type { Network } from '../../../models/session/network.js'
import type { KeptSegments } from './kept-segments.js'
import { joinRuns, type RunBatch } from './run-batch.js'

/** Means of estimating the stems of one stream. */
export interface Estimator {
  architecture: Architecture
  /** The networks that the architecture was made for. */
  networks: readonly Network[]
  statistics?: TrackStatistics
  /** Segments per network run, if the networks support batches. Default: 1. */
  batch?: number
  /**
   * Segments that earlier runs finished, and callbacks that keep later ones. Default: all are estimated, none is kept.
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
  context: EstimationContext,
): AsyncGenerator<StemBlock, void, void> {
  const { architecture, batch = 1, kept } = estimator
  const groupSize = architecture.batchAxis === undefined ? 1 : batch
  const pool = new FloatPool()
  const estimation = new Estimation(estimator, context, pool)
  const source = segments(stream.blocks, architecture.geometry, stream.channelCount, pool, {
    firstIndex: kept && !kept.read ? kept.count : 0,
    firstSample: stream.firstSample,
  })
  let group: Segment[] = []
  try {
    for (;;) {
      const startedAt = performance.now()
      const next = await source.next()
      context.timings.decode += performance.now() - startedAt
      context.signal?.throwIfAborted()
      if (next.done) break
      group.push(next.value)
      if (group.length < groupSize) continue
      estimation.start(group)
      group = []
      if (estimation.inFlight === maxInFlight) yield* estimation.finishOldest()
    }
    if (group.length > 0) estimation.start(group)
    while (estimation.inFlight > 0) yield* estimation.finishOldest()
  } finally {
    await source.return()
    await estimation.settled()
  }
}

/** The batches in flight, oldest first, and the sums of the segments that are done. */
class Estimation {
  readonly #estimator: Estimator
  readonly #context: EstimationContext
  readonly #pool: FloatPool
  readonly #overlapAdd = new OverlapAdd()
  readonly #completed: (block: StemBlock) => StemBlock
  readonly #inFlight: Work[] = []

  constructor(estimator: Estimator, context: EstimationContext, pool: FloatPool) {
    this.#estimator = estimator
    this.#context = context
    this.#pool = pool
    this.#completed = vocalsComplement(estimator.architecture, context.targets)
    if (estimator.kept?.state) this.#overlapAdd.restore(estimator.kept.state)
  }

  get inFlight(): number {
    return this.#inFlight.length
  }

  start(group: Segment[]): void {
    const { architecture, networks, statistics, kept } = this.#estimator
    if (group[0]!.index < (kept?.count ?? 0)) {
      this.#inFlight.push({ segments: group, runs: [] })
      return
    }
    const batch = this.#timed(() =>
      joinRuns(
        group.map((segment) => architecture.prepare(segment, statistics)),
        architecture.batchAxis,
        this.#pool,
      ),
    )
    const runs = batch.runs.map(async ({ network, feeds, fetches }) => {
      const result = await networks[network]!.run(feeds, fetches)
      this.#context.timings.network += result.runMs
      return { network, feeds: result.feeds, fetches: result.fetches }
    })
    // Awaited later; until then a rejection must not count as unhandled.
    for (const run of runs) run.catch(() => undefined)
    this.#inFlight.push({ segments: group, batch, runs })
  }

  async *finishOldest(): AsyncGenerator<StemBlock, void, void> {
    const { segments: group, batch, runs } = this.#inFlight[0]!
    const done = await Promise.all(runs)
    this.#inFlight.shift()
    this.#context.signal?.throwIfAborted()
    if (!batch) return yield* this.#readKept(group)
    const { kept, architecture, statistics } = this.#estimator
    const state = () => this.#overlapAdd.state
    const separated = this.#timed(() => batch.split(done))
    for (const [index, segment] of group.entries()) {
      const isLast = index === group.length - 1
      const finished = this.#timed(() =>
        this.#overlapAdd.add(architecture.collect(segment, separated[index]!, statistics)),
      )
      await kept?.note?.(segment.index, finished)
      if (isLast) await kept?.keepIfDue?.(state)
      yield* this.#blockOf(segment, finished)
      if (isLast) await kept?.consumed?.(segment.index, state)
      this.#giveBack(segment)
    }
  }

  /** Waits for all runs, however they end. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#inFlight.flatMap(({ runs }) => runs))
  }

  async *#readKept(group: readonly Segment[]): AsyncGenerator<StemBlock, void, void> {
    for (const segment of group) {
      const finished = await this.#estimator.kept?.read?.(segment.index)
      if (!finished) throw new Error(`segment ${segment.index} was neither kept nor estimated`)
      yield* this.#blockOf(segment, finished)
      this.#giveBack(segment)
    }
  }

  *#blockOf(segment: Segment, { start, sampleCount, stems }: FinishedAudio): Generator<StemBlock, void, void> {
    const offset = start - segment.start
    const block = this.#timed(() =>
      this.#completed({
        sampleCount,
        stems,
        mixture: segment.planes.map((plane) => plane.subarray(offset, offset + sampleCount)),
      }),
    )
    if (sampleCount > 0) yield block
  }

  #giveBack({ planes }: Segment): void {
    for (const plane of planes) this.#pool.give(plane)
  }

  #timed<Result>(work: () => Result): Result {
    const startedAt = performance.now()
    const result = work()
    this.#context.timings.dsp += performance.now() - startedAt
    return result
  }
}

/** Derives the vocals for a model that only estimates the accompaniments: the mixture minus the accompaniments. */
function vocalsComplement({ stems }: Architecture, targets: readonly StemName[]) {
  const isNeeded = targets.includes('vocals') && !stems.includes('vocals')
  const scratch = new FloatPlanes()
  return (block: StemBlock): StemBlock => {
    const rest = block.stems.accompaniments
    if (!isNeeded || rest === undefined) return block
    return { ...block, stems: { ...block.stems, vocals: scratch.difference(block.mixture, rest) } }
  }
}
