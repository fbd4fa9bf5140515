import { encodedFile } from './local-file.js'
import { PcmWriter } from './pcm-writer.js'
import { wavContainer, type WavOptions } from './wav-container.js'

/** Creates or replaces a WAV file, and writes it as audio arrives. */
export async function openWavWriter(path: string, options: WavOptions): Promise<PcmWriter> {
  return await PcmWriter.open(await encodedFile(path, options.from), wavContainer(options), options)
}
