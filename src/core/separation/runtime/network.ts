import type { ProviderFallback } from './execution-provider.js'

export interface Tensor {
  dims: readonly number[]
  data: Float32Array<ArrayBuffer>
}

export interface TensorInfo {
  name: string
  /** Element type, for example `float32`. */
  type: string
  /** A name instead of a number marks a dimension that the caller chooses. */
  shape: readonly (number | string)[]
}

export interface NetworkResult {
  feeds: Record<string, Tensor>
  fetches: Record<string, Tensor>
  /** Time that the run itself took. */
  runMs: number
}

/** A loaded network. */
export interface Network {
  readonly inputs: readonly TensorInfo[]
  readonly outputs: readonly TensorInfo[]
  /** Set when the processor runs it although something else should. */
  readonly fallback?: ProviderFallback
  /** False once it was closed or its thread ended. */
  readonly isOpen: boolean
  /**
   * Fills `fetches` from `feeds`. The tensors' buffers belong to the network until the run ends; the same memory comes back in
   * the result, possibly as new arrays. Runs are queued in the order of the calls.
   */
  run(feeds: Record<string, Tensor>, fetches: Record<string, Tensor>): Promise<NetworkResult>
  /** Frees the network. Waits for runs in progress: ending a thread within a run would abort the whole process. */
  close(): Promise<void>
}
