import { rm } from 'node:fs/promises'
import { badInput } from '../../../engine/errors.js'
import { FloatPlanes } from '../../../media/dsp/float-planes.js'
import { openWavWriter } from '../../../media/encode/wav-writer.js'
import type { MixedSong } from './compare.js'
import type { SongFolder } from './song-folders.js'
import { addStereo, tracks } from './tracks.js'

/**
 * Reads a song once, so that errors in its files are found before a model runs, and writes the sum of its stems to
 * `path` (float WAV) unless it has its own mixture.
 *
 * @throws StemworkError `BAD_INPUT` for files that cannot be read, do not match or hold no audio; the signal's reason
 */
export async function mixSong(
  song: SongFolder,
  path: string,
  signal?: AbortSignal,
): Promise<{ song: MixedSong; seconds: number }> {
  const stems = [song.vocals, ...song.accompaniments]
  const { blocks, sampleRate } = await tracks(
    [...stems, ...(song.mixture === undefined ? [] : [song.mixture])],
    undefined,
    signal,
  )
  const writer =
    song.mixture === undefined ? await openWavWriter(path, { sampleRate, channels: 2, format: '32f' }) : undefined
  const planes = new FloatPlanes()
  let sampleCount = 0
  try {
    for await (const { channels } of blocks) {
      sampleCount += channels[0]!.length
      await writer?.write(addStereo(planes.take(2, channels[0]!.length), channels.slice(0, 2 * stems.length)))
    }
    await writer?.close()
  } catch (error) {
    await writer?.abandon().catch(() => undefined)
    await rm(path, { force: true })
    throw error
  }
  if (sampleCount === 0) throw badInput('no_audio', 'Its files hold no audio.')
  return { song: { ...song, mixture: song.mixture ?? path }, seconds: sampleCount / sampleRate }
}
