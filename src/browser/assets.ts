import { StemworkError } from '../core/engine/errors.js'

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
    return address === undefined ? openOwn() : new Worker(trusted(absolute(address)), { type: 'module' })
  } catch (error) {
    throw notLoaded(error)
  }
}

export function absolute(address: string | URL): string {
  return new URL(address, document.baseURI).href
}

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(address: string): string },
  ): {
    createScriptURL(address: string): string
  }
}

let policy: ReturnType<TrustedTypes['createPolicy']> | undefined

/** For pages whose policy requires script addresses to be vouched for (`require-trusted-types-for`). */
function trusted(address: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  policy ??= trustedTypes?.createPolicy('stemwork', { createScriptURL: (vouched) => vouched })
  return policy?.createScriptURL(address) ?? address
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
