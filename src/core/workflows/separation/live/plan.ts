import { invalidOptions } from '../../../engine/errors.js'

/** Division of a stream for the network. Counts are samples at the network's rate. */
export interface LivePlan {
  /** Samples from one run of the network to the next: each run finishes that many. */
  hop: number
  /** Samples that a run reads after those it finishes. */
  lookAhead: number
  /** Cross-fade from one run to the next, and between estimates and unchanged input. */
  fade: number
  /** All samples that a run reads, to the end of the look-ahead. */
  context: number
  /** Longest duration of a run. */
  slackMs: number
}

/** The plan in the units of the stream. */
export interface LiveTiming {
  /** Samples by which the vocals lag behind, without the duration of a run. */
  delaySamples: number
  fadeSamples: number
  slackMs: number
}

export interface LivePlanOptions {
  /** Time from a sample's arrival to that of its stems. */
  latencyMs: number
  /** Of the network. */
  sampleRate: number
  /** Of the stream. */
  inputRate: number
  /** Runs of the network for one hop: one for each pair of channels. */
  runs: number
  /** Most samples that the network takes. */
  longest: number
  /** Seconds of audio that one core separates in a second. */
  speed: number
}

export const latencyBounds = { min: 250, max: 4000 } as const

/** Share of one core that the runs may take. */
const mostBusy = 0.6
/** Share of the hop in the time that filters and cross-fade leave. The rest is look-ahead and slack. */
const hopShare = 0.3
const fadeMs = 20
/** Length of the resampling filter, in samples of the lower rate: each conversion delays by half of it. */
const filterSamples = 176

/**
 * Divides the latency: `latency = fade + filters + look-ahead + hop + slack`. Runs that take all of their slack use
 * 60 % of one core, and read back as far as that allows.
 *
 * @throws StemworkError `INVALID_OPTIONS` for a latency out of bounds
 */
export function livePlan(options: LivePlanOptions): LivePlan {
  const { latencyMs, sampleRate, inputRate, runs, longest, speed } = options
  const { min, max } = latencyBounds
  if (!(latencyMs >= min && latencyMs <= max))
    throw invalidOptions(`latencyMs must be ${min} to ${max}, not ${latencyMs}.`)
  const filterMs = inputRate === sampleRate ? 0 : (1000 * filterSamples) / Math.min(inputRate, sampleRate)
  const restMs = latencyMs - fadeMs - filterMs
  const samples = (milliseconds: number) => Math.round((milliseconds * sampleRate) / 1000)
  const hopMs = hopShare * restMs
  const slackMs = mostBusy * hopMs
  const lookAhead = samples(restMs - hopMs - slackMs)
  const hop = samples(hopMs)
  const fade = samples(fadeMs)
  const affordable = samples((slackMs * speed) / runs)
  return { hop, lookAhead, fade, slackMs, context: Math.min(longest, Math.max(affordable, hop + lookAhead)) }
}

export function liveTiming(
  { hop, lookAhead, fade, slackMs }: LivePlan,
  { sampleRate, inputRate }: Pick<LivePlanOptions, 'sampleRate' | 'inputRate'>,
): LiveTiming {
  const samples = (count: number) => Math.ceil((count * inputRate) / sampleRate)
  const filter = inputRate === sampleRate ? 0 : Math.ceil((filterSamples * inputRate) / Math.min(inputRate, sampleRate))
  return { delaySamples: samples(hop + lookAhead + fade) + filter, fadeSamples: samples(fade), slackMs }
}
