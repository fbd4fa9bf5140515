import { encodedFile } from './local-file.js'
import { openPcmWriter } from './pcm-writer.js'
import { wavContainer, type WavOptions } from './wav-container.js'

/** Creates or replaces a WAV file, and writes it as audio arrives. */
export async function openWavWriter(path: string, options: WavOptions) {
  return await openPcmWriter(await encodedFile(path, options.from), wavContainer(options), options)
}
