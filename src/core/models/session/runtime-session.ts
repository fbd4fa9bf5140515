import type { ExecutionProvider } from './execution-provider.js'
import type { NetworkFacts, Tensor, TensorInfo } from './network.js'

export interface RuntimeSettings {
  /** Threads per inference. Default: `defaultThreads()`. */
  threads: number
  /** The provider that runs the network; if it is not available, the CPU does. Default: `cpu`. */
  provider: ExecutionProvider
}

/** A network that a runtime has loaded into this thread. One run at a time. */
export interface RuntimeSession extends Pick<NetworkFacts, 'inputs' | 'outputs' | 'fallback'> {
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
