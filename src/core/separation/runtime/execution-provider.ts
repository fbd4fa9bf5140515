/** What runs a network: the processor, or NVIDIA's, Apple's or Windows' accelerators, where onnxruntime-node has them. */
export const executionProviders = ['cpu', 'cuda', 'coreml', 'dml'] as const

export type ExecutionProvider = (typeof executionProviders)[number]

/** Why a network does not run where it should. */
export interface ProviderFallback {
  wanted: ExecutionProvider
  reason: string
}
