import { openFlac } from './flac-source.js'
import { openMp3 } from './mp3-source.js'
import type { OpenFile, PcmSource } from './pcm.js'

/**
 * FLAC and MP3 read piece by piece; `undefined` for any other file. A script of its own, loaded with the first song
 * that is not WAV or AIFF.
 */
export async function openCompressed(file: OpenFile): Promise<PcmSource | undefined> {
  return (await openFlac(file)) ?? (await openMp3(file))
}
