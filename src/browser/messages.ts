import type { PcmFormat } from '../core/media/encode/pcm-encoder.js'
import type { NetworkAddresses } from './assets.js'
import type { SeparatedTrack } from '../core/workflows/separation/separate-track.js'
import type { SeparationProgress } from '../core/workflows/separation/separate-track.js'

/** Stems that the bundled model gives. */
export const deviceStems = ['vocals', 'accompaniments'] as const

export type DeviceStem = (typeof deviceStems)[number]

/** Request to the worker. */
export interface DeviceRequest extends NetworkAddresses {
  file: Blob
  /** Files to write. */
  handles: Record<DeviceStem, FileSystemFileHandle>
  format: PcmFormat
  maxSeconds: number | undefined
}

export type ToWorker = { kind: 'separate'; request: DeviceRequest } | { kind: 'cancel' }

export type FromWorker =
  | { kind: 'progress'; progress: SeparationProgress }
  | { kind: 'done'; separated: SeparatedTrack & { warnings: readonly string[] } }
  | { kind: 'canceled' }
  | { kind: 'failed'; code: string; reason: string | undefined; message: string; cause: string | undefined }
