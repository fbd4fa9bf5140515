import { dirname } from 'node:path'
import { FilesCheckpoint } from './checkpoint/files-checkpoint.js'
import { SeparationCheckpoint } from './checkpoint/separation-checkpoint.js'
import type { TrackCheckpoint } from './checkpoint/track-checkpoint.js'
import { formatTable } from '../../media/encode/output-format.js'
import { targetStems } from './pipeline/pipeline.js'
import { sha256 } from '../../models/file-hash.js'
import type { StemName } from '../../models/stems.js'
import type { SeparationOptions } from './separation-options.js'
import { hash } from 'node:crypto'
import { packageVersion } from '../../engine/package-files.js'

/** Facts that, besides the options, determine the track's samples. */
interface Work {
  models: unknown
  runtime: unknown
  passes: number
  /** Whether the track is decoded as it is separated, and not before. */
  isReadOnce: boolean
}

/**
 * Opens the checkpoint of a separation, if it has one. Keeps the files if a single pass produces their bytes and their
 * encoder can be resumed; otherwise keeps the estimates of the passes, from which the files are made again.
 */
export async function openCheckpoint(
  inputPath: string,
  { models, runtime, passes, isReadOnce }: Work,
  options: SeparationOptions,
): Promise<TrackCheckpoint | undefined> {
  const { checkpoint, outputs, model, ensemble, overlap, shifts, batch, denoise, ownAccompaniments } = options
  const { provider, decoders, growingPeaks, format = '16' } = options
  if (!checkpoint?.isOn) return undefined
  const stems = targetStems(Object.keys(outputs) as StemName[], ownAccompaniments)
  const shares = typeof model === 'object' ? model.map((choice) => ({ ...choice, model: undefined })) : undefined
  const work = { models, runtime, shares, ensemble, stems, overlap, shifts, batch, denoise, provider, decoders }
  // The run's folder.
  const directory = dirname(Object.values(outputs)[0] ?? inputPath)
  const keepsFiles = isReadOnce && !formatTable[format].isCompressed
  const whole = keepsFiles ? { ...work, format, growingPeaks, files: Object.keys(outputs) } : work
  let made: Promise<string> | undefined
  const fingerprint = () => (made ??= fingerprintOf(inputPath, whole))
  return keepsFiles
    ? await FilesCheckpoint.open({ checkpoint, directory, fingerprint })
    : await SeparationCheckpoint.open({ checkpoint, directory, passes, fingerprint })
}

/** A hash of the file's bytes, this package's version, and everything else that determines the samples. */
async function fingerprintOf(inputPath: string, work: unknown): Promise<string> {
  return hash('sha256', JSON.stringify({ input: await sha256(inputPath), version: packageVersion(), work }))
}
