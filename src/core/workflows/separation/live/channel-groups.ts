import type { Speaker } from '../../../media/dsp/audio-stream.js'
import { speakersOf } from '../../../media/dsp/stereo.js'

/** Channels that the network hears as left and right; the same one twice is heard as mono. */
export type ChannelGroup = readonly [left: number, right: number]

const pairs: readonly [Speaker, Speaker][] = [
  ['left', 'right'],
  ['surroundLeft', 'surroundRight'],
]

/**
 * Groups the channels in pairs, in WAVE order; a channel without a partner forms its own group. The LFE channel is in
 * no group, because it has no voice.
 */
export function channelGroups(channelCount: number): ChannelGroup[] {
  const speakers = speakersOf({ channelCount, speakers: undefined })
  const groups: ChannelGroup[] = []
  const taken = new Set<number>()
  for (const [channel, speaker] of speakers.entries()) {
    if (speaker === 'lfe' || taken.has(channel)) continue
    const partner = pairs.find(([first]) => first === speaker)?.[1]
    const found = speakers.findIndex((each, at) => each === partner && !taken.has(at))
    const other = found < 0 ? channel : found
    taken.add(channel).add(other)
    groups.push([channel, other])
  }
  return groups
}
