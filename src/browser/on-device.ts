import manifestJson from '../../models/embedded/model.json'
import { StemworkError } from '../core/engine/errors.js'
import { openSource } from '../core/media/decode/open-source.js'
import { resample } from '../core/media/dsp/resample.js'
import { toStereo } from '../core/media/dsp/stereo.js'
import { manifestSchema } from '../core/models/manifest.js'
import { networkOf } from '../core/models/session/network-of.js'
import type { Network } from '../core/models/session/network.js'
import { openWasmSession } from '../core/models/session/wasm-session.js'
import { embeddedArchitecture } from '../core/workflows/separation/architectures/embedded.js'
import { type SeparatedTrack, separateTrack } from '../core/workflows/separation/separate-track.js'
import type { SeparationProgress } from '../core/workflows/separation/separate-track.js'
import { blobBytes } from './blob-bytes.js'
import { loadCodec } from './codecs.js'
import { openDeviceFiles } from './device-files.js'
import { type DeviceRequest, deviceStems } from './messages.js'
import { env, InferenceSession, Tensor } from './onnxruntime.js'

interface Hooks {
  signal: AbortSignal
  onProgress(progress: SeparationProgress): void
}

/** Separates a file with the bundled model, as the server does with WebAssembly. Throws as `openAudio` does. */
export async function separateOnDevice(
  request: DeviceRequest,
  { signal, onProgress }: Hooks,
): Promise<SeparatedTrack & { warnings: readonly string[] }> {
  const { file, handles, format, maxSeconds } = request
  // Opened first: a file that cannot be used is refused before the network is loaded.
  const opened = await openSource(blobBytes(file), {
    signal,
    maxSeconds,
    load: loadCodec,
    openOther: (_, error) => Promise.reject(error.toBadInput(advice)),
  })
  const network = await loadNetwork(request, signal)
  const architecture = await embeddedArchitecture(manifest, [network])
  const { sampleRate } = architecture
  const files = await openDeviceFiles(handles, { sampleRate, format })
  try {
    const stream = resample(toStereo(opened), sampleRate)
    const members = [{ architecture, networks: [network], stream }]
    const separated = await separateTrack(members, files, { outputs: deviceStems, signal, onProgress })
    return { ...separated, warnings: opened.warnings ?? [] }
  } catch (error) {
    await files.discard()
    throw error
  }
}

const manifest = manifestSchema.parse(manifestJson)

const advice = 'Take its sound as WAV, FLAC, MP3, M4A or Ogg.'

async function loadNetwork({ wasm, model }: DeviceRequest, signal: AbortSignal): Promise<Network> {
  // Else it is beside this script.
  if (wasm !== undefined) env.wasm.wasmPaths = { wasm }
  // More threads need memory that the page may share only if its server isolates it from others.
  env.wasm.numThreads = 1
  const address = model ?? new URL('../../models/embedded/model.onnx', import.meta.url).href
  const session = await openWasmSession({ InferenceSession, Tensor }, await download(address, signal))
  return networkOf(session, { runtime: 'wasm' })
}

async function download(address: string, signal: AbortSignal): Promise<Uint8Array> {
  const response = await fetch(address, { signal }).catch((error: unknown) => {
    signal.throwIfAborted()
    throw unavailable(address, 'there was no answer', error)
  })
  if (!response.ok) throw unavailable(address, `the answer was ${response.status}`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  if (bytes.length === manifest.bytes) return bytes
  throw unavailable(address, `it has ${bytes.length} bytes; expected ${manifest.bytes}`)
}

function unavailable(address: string, what: string, cause?: unknown): StemworkError {
  return new StemworkError(
    'MODEL_UNAVAILABLE',
    `The model could not be loaded from ${address}: ${what}. Serve the model of the package there, or name its ` +
      'address in assets.model.',
    { cause },
  )
}
