import type { Runtime } from '../../../models/session/runtime.js'

/**
 * Seconds of audio that one core separates in a second with the bundled network, spectra included: two thirds of what
 * was measured (`npm run bench -- live`). Constants, so that a stream gives the same stems on every machine.
 */
export const coreSpeed: Record<Runtime, number> = { native: 20, wasm: 7 }
