import { readFile, writeFile } from 'node:fs/promises'
import decode from 'audio-decode'
import { fromWav, toWav } from './pcm-wav.mjs'

/**
 * Writes the demo song's mixture to `path` (WAV, 16-bit) and returns its planes as written, with those of the two stems
 * whose sum it is.
 */
export async function writeDemoSong(path) {
  const [vocals, accompaniments] = await Promise.all(['vocals', 'accompaniments'].map(readStem))
  const sum = vocals.channelData.map((plane, channel) =>
    plane.map((sample, i) => sample + accompaniments.channelData[channel][i]),
  )
  const bytes = toWav(sum, vocals.sampleRate)
  await writeFile(path, bytes)
  return {
    sampleRate: vocals.sampleRate,
    mixture: fromWav(bytes),
    vocals: vocals.channelData,
    accompaniments: accompaniments.channelData,
  }
}

async function readStem(name) {
  return decode(await readFile(new URL(`${name}.ogg`, import.meta.url)))
}
