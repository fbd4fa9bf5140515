import type { ProviderFallback } from './execution-provider.js'
import type { Runtime } from './runtime.js'

export interface Tensor {
  dims: readonly number[]
  data: Float32Array<ArrayBuffer>
}

export interface TensorInfo {
  name: string
  /** Element type, for example `float32`. */
  type: string
  /** A name instead of a number marks a dimension whose size the caller chooses. */
  shape: readonly (number | string)[]
}

export interface NetworkResult {
  feeds: Record<string, Tensor>
  fetches: Record<string, Tensor>
  /** Duration of the run itself, in milliseconds. */
  runMs: number
}

/** Facts about a loaded network. */
export interface NetworkFacts {
  readonly inputs: readonly TensorInfo[]
  readonly outputs: readonly TensorInfo[]
  readonly runtime: Runtime
  /** Instructions for installing the faster runtime, if `auto` did not find it. */
  readonly runtimeHint?: string
  /** Set if the CPU runs it although another provider was requested. */
  readonly fallback?: ProviderFallback
}

/** A loaded network. */
export interface Network extends NetworkFacts {
  /** False after it was closed or its thread ended. */
  readonly isOpen: boolean
  /**
   * Fills `fetches` from `feeds`. The tensors' buffers belong to the network until the run ends; the result holds the
   * same memory, possibly as new arrays. Runs are queued in call order.
   */
  run(feeds: Record<string, Tensor>, fetches: Record<string, Tensor>): Promise<NetworkResult>
  /**
   * Frees the network. Waits for runs in progress, because ending a thread during a run would abort the whole process.
   */
  close(): Promise<void>
}
