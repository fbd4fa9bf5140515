import { nameInUrl } from '../job/download-name.js'
import type { JobRecord } from '../job/job.js'

/** Typical rates, for formats without a known job. */
const usualBytesPerSecond: Readonly<Record<string, number>> = {
  wav: 176_400,
  aiff: 176_400,
  aif: 176_400,
  flac: 100_000,
  mp3: 30_000,
  m4a: 30_000,
  aac: 24_000,
  ogg: 22_000,
  opus: 14_000,
}

/** Weights of samples with other settings, with another model, and from another worker. */
const otherSettings = 0.2
const otherModel = 0.02
const otherWorker = 0.3

/** Estimates the milliseconds for a whole job from the bytes of its inputs and its worker; `undefined`: no samples. */
export type WorkHistory = (job: JobRecord, bytes: number | undefined, worker?: string) => number | undefined

/**
 * Makes an estimator for jobs of one workflow from recent ones.
 *
 * @param jobs that have succeeded
 * @param inputs names of the params that are files
 */
export function workHistory(jobs: readonly JobRecord[], inputs: readonly string[]): WorkHistory {
  const samples = jobs.flatMap((job) => sampleOf(job, inputs))
  return (job, bytes, worker) => {
    const [settings, model] = [settingsOf(job, inputs), modelOf(job)]
    const weighed = samples.map((sample) => ({
      ...sample,
      weight:
        (sample.settings === settings ? 1 : sample.model === model ? otherSettings : otherModel) *
        (worker === undefined || sample.worker === worker ? 1 : otherWorker),
    }))
    if (bytes === undefined) return median(weighed, ({ ms }) => ms)
    const measured = weighed.filter((sample) => sample.seconds > 0 && sample.bytes > 0)
    if (measured.length === 0) return linear(weighed, ({ bytes: size }) => size)?.(bytes)
    const format = formatOf(job)
    const alike = measured.filter((sample) => sample.format === format)
    const known = alike.length > 0 ? undefined : usualBytesPerSecond[format]
    const bytesPerSecond = known ?? median(alike.length > 0 ? alike : measured, (one) => one.bytes / one.seconds)
    return linear(measured, ({ seconds }) => seconds)?.(bytes / (bytesPerSecond ?? NaN))
  }
}

/** Measurements of a successful job, from which the duration of others is estimated. */
function sampleOf(job: JobRecord, inputs: readonly string[]) {
  const { history, settlement } = job
  // No attempt repeats the kept work of earlier ones, so their times add up.
  const ms = history.reduce((sum, { startedAt, endedAt }) => sum + Math.max(0, (endedAt ?? startedAt) - startedAt), 0)
  if (ms <= 0) return []
  // 0: unknown, or not reported by the workflow.
  const { audioSeconds: seconds = 0, bytes = 0 } = settlement ?? {}
  return [
    {
      ms,
      seconds,
      bytes,
      format: formatOf(job),
      settings: settingsOf(job, inputs),
      model: modelOf(job),
      worker: history.at(-1)?.worker ?? '',
    },
  ]
}

/** All params except the inputs, as text. */
function settingsOf({ params }: Pick<JobRecord, 'params'>, inputs: readonly string[]): string {
  return JSON.stringify(
    Object.entries(params)
      .filter(([name]) => !inputs.includes(name))
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
}

/** The param `model`, by which workflows with several models choose one. */
function modelOf({ params }: Pick<JobRecord, 'params'>): string {
  return typeof params.model === 'string' ? params.model : ''
}

/** Extension of the file's name, if known. A job usually has the name of its file. */
function formatOf({ name, params }: Pick<JobRecord, 'name' | 'params'>): string {
  const fileName = name ?? (typeof params.inputUrl === 'string' ? nameInUrl(params.inputUrl) : undefined)
  return /\.([a-z0-9]{2,4})$/i.exec(fileName ?? '')?.[1]?.toLowerCase() ?? ''
}

/**
 * Fits the line with the least squared relative errors. Intercept and slope are kept from being negative, as few or odd
 * samples often suggest.
 */
function linear<One extends { ms: number; weight: number }>(
  samples: readonly One[],
  unitsOf: (sample: One) => number,
): ((units: number) => number) | undefined {
  if (samples.length === 0) return undefined
  const sums = { xx: 0, xy: 0, yy: 0, x: 0, y: 0 }
  for (const sample of samples) {
    const [x, y] = [1 / sample.ms, unitsOf(sample) / sample.ms]
    sums.xx += sample.weight * x * x
    sums.xy += sample.weight * x * y
    sums.yy += sample.weight * y * y
    sums.x += sample.weight * x
    sums.y += sample.weight * y
  }
  const { xx, xy, yy, x, y } = sums
  const determinant = xx * yy - xy * xy
  // Whether all samples have practically the same length.
  const isFlat = determinant <= 1e-9 * xx * yy
  const base = isFlat ? 0 : (x * yy - y * xy) / determinant
  const perUnit = isFlat ? y / yy : (y * xx - x * xy) / determinant
  if (yy === 0 || perUnit <= 0) return () => x / xx
  if (base <= 0) return (units) => (y / yy) * units
  return (units) => base + perUnit * units
}

function median<One extends { weight: number }>(
  samples: readonly One[],
  valueOf: (sample: One) => number,
): number | undefined {
  const sorted = samples.map((sample) => ({ value: valueOf(sample), weight: sample.weight }))
  sorted.sort((a, b) => a.value - b.value)
  let rest = sorted.reduce((sum, { weight }) => sum + weight, 0) / 2
  return sorted.find(({ weight }) => (rest -= weight) <= 0)?.value ?? sorted.at(-1)?.value
}
