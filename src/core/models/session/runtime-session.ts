import type { ExecutionProvider, ProviderFallback } from './execution-provider.js'
import type { Tensor, TensorInfo } from './network.js'

export interface RuntimeSettings {
  /** Threads per inference. */
  threads: number
  /** What should run the network; if it is not available, the CPU does. */
  provider: ExecutionProvider
}

/** A network that a runtime has loaded into this thread. One run at a time. */
export interface RuntimeSession {
  readonly inputs: readonly TensorInfo[]
  readonly outputs: readonly TensorInfo[]
  /** Set if the CPU runs it although another provider was requested. */
  readonly fallback?: ProviderFallback
  /** Fills the arrays of `fetches` from `feeds`. May block the thread for the whole inference. */
  run(feeds: Record<string, Tensor>, fetches: Record<string, Tensor>): Promise<void>
  release(): Promise<void>
}

/** A tensor as both runtimes describe it. */
interface TensorMetadata {
  readonly name: string
  readonly isTensor: boolean
  readonly type?: string
  readonly shape?: readonly (number | string)[]
}

export function tensorInfo({ name, type = 'unknown', shape = [] }: TensorMetadata): TensorInfo {
  return { name, type, shape }
}
