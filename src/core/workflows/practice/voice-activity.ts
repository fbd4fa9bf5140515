import type { AudioStream } from '../../media/dsp/audio-stream.js'

/** A stretch of time, in seconds. */
export interface Phrase {
  start: number
  end: number
}

const frameSeconds = 0.02
/** Lower levels are always silence. */
const lowestLevel = 10 ** (-55 / 20)
/** A voice is loud where it exceeds this share of its levels. */
const loudShare = 0.95
/** Residue of other instruments in separated vocals is mostly below this fraction of the loud level. */
const activeBelowLoud = 10 ** (-24 / 20)
/** Shorter pauses are consonants and breaths within a phrase. */
const shortestPauseSeconds = 0.25
const shortestPhraseSeconds = 0.15

/** Finds where somebody sings: stretches in which separated vocals are loud enough, with the pauses between them. */
export async function voiceActivity(vocals: AudioStream): Promise<Phrase[]> {
  const levels = await frameLevels(vocals)
  const heard = levels.filter((level) => level > lowestLevel).sort((a, b) => a - b)
  const loud = heard[Math.floor(loudShare * (heard.length - 1))] ?? 0
  const threshold = Math.max(lowestLevel, loud * activeBelowLoud)
  const phrases: Phrase[] = []
  for (const [index, level] of levels.entries()) {
    if (level <= threshold) continue
    const [start, end] = [index * frameSeconds, (index + 1) * frameSeconds]
    const last = phrases.at(-1)
    if (last && start - last.end < shortestPauseSeconds) last.end = end
    else phrases.push({ start, end })
  }
  return phrases.filter(({ start, end }) => end - start >= shortestPhraseSeconds)
}

/** The root mean square of each frame, of all channels. */
async function frameLevels({ blocks, sampleRate, channelCount }: AudioStream): Promise<number[]> {
  const frameSamples = Math.round(frameSeconds * sampleRate)
  const levels: number[] = []
  let [power, count] = [0, 0]
  for await (const { channels } of blocks) {
    for (let i = 0; i < channels[0]!.length; i++) {
      for (const plane of channels) power += plane[i]! ** 2
      if (++count < frameSamples) continue
      levels.push(Math.sqrt(power / (count * channelCount)))
      power = count = 0
    }
  }
  return levels
}
