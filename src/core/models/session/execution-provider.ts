/** Providers of inference: the CPU, or an NVIDIA, Apple or Windows accelerator that onnxruntime-node supports here. */
export const executionProviders = ['cpu', 'cuda', 'coreml', 'dml'] as const

export type ExecutionProvider = (typeof executionProviders)[number]

/** Why a network does not run on the requested provider. */
export interface ProviderFallback {
  wanted: ExecutionProvider
  reason: string
}
