import { StemworkError } from '../core/engine/errors.js'
import { trustedScript } from './trusted-script.js'

/** Addresses of files that do not lie where the package has them. */
export interface DeviceAssets {
  /**
   * Of `stemwork/dist/browser/worker.js`, on the page's own origin. Required where the page has the policy
   * `require-trusted-types-for 'script'`.
   */
  worker?: string | URL
  /** Of `stemwork/dist/browser/live-worker.js`, for streams, under the same rules. */
  liveWorker?: string | URL
  /** Of `stemwork/dist/browser/live-processor.js`, for `createLiveNode`. */
  liveProcessor?: string | URL
  /** Of `stemwork/dist/browser/ort-wasm-simd-threaded.wasm`. */
  wasm?: string | URL
  /** Of `stemwork/models/embedded/model.onnx`. */
  model?: string | URL
}

/** Addresses for a worker; undefined for files beside its script. */
export interface NetworkAddresses {
  wasm: string | undefined
  model: string | undefined
}

export function addressesOf({ wasm, model }: DeviceAssets): NetworkAddresses {
  return { wasm: wasm && absolute(wasm), model: model && absolute(model) }
}

/** @param openOwn opens the package's own script */
export function openWorker(address: string | URL | undefined, openOwn: () => Worker): Worker {
  try {
    return address === undefined ? openOwn() : new Worker(trustedScript(absolute(address)), { type: 'module' })
  } catch (error) {
    throw notLoaded(error)
  }
}

export function absolute(address: string | URL): string {
  return new URL(address, document.baseURI).href
}

export function notLoaded(cause: unknown): StemworkError {
  return new StemworkError(
    'MISSING_DEPENDENCY',
    "The worker that separates, or its WebAssembly, could not be loaded. Serve the package's files from the page's " +
      'own origin, or name their addresses in assets, and allow them in the Content-Security-Policy: ' +
      "worker-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'.",
    { cause },
  )
}
