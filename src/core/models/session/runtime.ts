/** Runtimes for networks: the native library of onnxruntime-node, or the WebAssembly build in this package. */
export type Runtime = 'native' | 'wasm'

/** `auto` is the native library where it can be loaded, else WebAssembly. */
export const runtimeChoices = ['auto', 'native', 'wasm'] as const

export type RuntimeChoice = (typeof runtimeChoices)[number]

/** The command that installs the native library, also where only the npm registry can be reached. */
export const installCommand = 'npm install onnxruntime-node --ignore-scripts'
