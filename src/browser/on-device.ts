import { openSource } from '../core/media/decode/open-source.js'
import { resample } from '../core/media/dsp/resample.js'
import { toStereo } from '../core/media/dsp/stereo.js'
import { type SeparatedTrack, separateTrack } from '../core/workflows/separation/separate-track.js'
import type { SeparationProgress } from '../core/workflows/separation/separate-track.js'
import { blobBytes } from './blob-bytes.js'
import { loadCodec } from './codecs.js'
import { openDeviceFiles } from './device-files.js'
import { type DeviceRequest, deviceStems } from './messages.js'
import { loadNetwork } from './load-network.js'

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
  const { network, architecture } = await loadNetwork(request, signal)
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

const advice = 'Take its sound as WAV, FLAC, MP3, M4A or Ogg.'
