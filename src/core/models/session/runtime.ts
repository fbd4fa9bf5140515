import { StemworkError } from '../../engine/errors.js'

/** What runs networks: the native library of onnxruntime-node, or the WebAssembly build in this package. */
export type Runtime = 'native' | 'wasm'

/** `auto` is the native library where it can be loaded, else WebAssembly. */
export const runtimeChoices = ['auto', 'native', 'wasm'] as const

export type RuntimeChoice = (typeof runtimeChoices)[number]

/**
 * The choice of whoever runs the program, in the environment variable `STEMWORK_RUNTIME`; without it, `auto`.
 *
 * @throws StemworkError `INVALID_OPTIONS` for another value
 */
export function defaultRuntime(): RuntimeChoice {
  const text = process.env.STEMWORK_RUNTIME || 'auto'
  const found = runtimeChoices.find((name) => name === text)
  if (found) return found
  throw new StemworkError(
    'INVALID_OPTIONS',
    `STEMWORK_RUNTIME must be one of ${runtimeChoices.join(', ')}, not "${text}".`,
  )
}

/** The command that installs the native library, also where only the npm registry can be reached. */
export const installCommand = 'npm install onnxruntime-node --onnxruntime-node-install=skip'
