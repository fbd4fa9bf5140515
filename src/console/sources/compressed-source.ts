import { openAac } from './aac-source.js'
import { openFlac } from './flac-source.js'
import { openMp3 } from './mp3-source.js'
import { openOgg } from './ogg-source.js'
import type { OpenFile, PcmSource } from './pcm.js'

/**
 * Opens FLAC, AAC in MP4, Vorbis and Opus in Ogg, and MP3, to be read piece by piece; `undefined` for any other file. A
 * separate script, loaded with the first song that is not WAV or AIFF.
 */
export async function openCompressed(file: OpenFile): Promise<PcmSource | undefined> {
  for (const open of [openFlac, openAac, openOgg, openMp3]) {
    const source = await open(file)
    if (source) return source
  }
  return undefined
}
