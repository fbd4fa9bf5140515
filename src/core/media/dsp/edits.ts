import { badInput } from '../../engine/errors.js'
import type { AudioBlock, AudioStream } from './audio-stream.js'
import { speakersOf, toStereo } from './stereo.js'

/** The part of a stream to keep, and its loudness. Positions are rounded to samples. */
export interface Edits {
  /** Default: 0. */
  startSeconds?: number
  /** Default: up to the end. */
  lengthSeconds?: number
  /** Linear, from silence. Default: 0. */
  fadeInSeconds?: number
  /** Linear, to silence at the end. Memory grows with its length. Default: 0. */
  fadeOutSeconds?: number
  /** Default: 0. */
  gainDb?: number
}

/** @throws StemworkError `BAD_INPUT` `no_audio`, while it is read, if nothing is left */
export function edited(stream: AudioStream, edits: Edits): AudioStream {
  const { startSeconds = 0, lengthSeconds = Infinity, fadeInSeconds = 0, fadeOutSeconds = 0, gainDb = 0 } = edits
  const samples = (seconds: number) => Math.round(seconds * stream.sampleRate)
  const start = samples(startSeconds)
  const sampleCount =
    stream.sampleCount === undefined
      ? undefined
      : Math.max(0, Math.min(stream.sampleCount - start, samples(lengthSeconds)))
  let { blocks } = stream
  if (start > 0 || lengthSeconds < Infinity) blocks = cut(blocks, start, samples(lengthSeconds))
  if (gainDb !== 0 || fadeInSeconds > 0) blocks = scaled(blocks, 10 ** (gainDb / 20), samples(fadeInSeconds))
  if (fadeOutSeconds > 0) blocks = fadedOut(blocks, samples(fadeOutSeconds), stream.channelCount)
  return { ...stream, sampleCount, blocks: notEmpty(blocks) }
}

/** Converts to one or two channels; `undefined` keeps all. One channel is the mean of the left and the right. */
export function withChannels(stream: AudioStream, count: 1 | 2 | undefined): AudioStream {
  if (count === undefined || stream.channelCount === count) return stream
  const stereo = toStereo(stream)
  if (count === 2) return stereo
  return { ...stereo, channelCount: 1, blocks: mixed(stereo.blocks) }
}

/** Puts the channels in the order of WAVE and FLAC, if that order has all their speakers. */
export function inFileOrder(stream: AudioStream): AudioStream {
  const given = speakersOf(stream)
  const wanted = speakersOf({ channelCount: stream.channelCount })
  const free = [...given.keys()]
  const order = wanted.map((speaker) => {
    const at = free.findIndex((channel) => given[channel] === speaker)
    return at < 0 ? -1 : free.splice(at, 1)[0]!
  })
  if (order.includes(-1) || order.every((channel, index) => channel === index)) return stream
  return { ...stream, speakers: undefined, blocks: reordered(stream.blocks, order) }
}

async function* cut(blocks: AsyncIterable<AudioBlock>, start: number, length: number): AsyncGenerator<AudioBlock> {
  const end = start + length
  let position = 0
  for await (const { channels } of blocks) {
    const from = Math.max(0, start - position)
    const to = Math.min(channels[0]!.length, end - position)
    if (from < to) yield { channels: channels.map((plane) => plane.subarray(from, to)) }
    position += channels[0]!.length
    if (position >= end) return
  }
}

async function* scaled(blocks: AsyncIterable<AudioBlock>, gain: number, fadeIn: number): AsyncGenerator<AudioBlock> {
  let position = 0
  for await (const { channels } of blocks) {
    yield { channels: channels.map((plane) => plane.map((value, i) => value * gain * rise(position + i, fadeIn))) }
    position += channels[0]!.length
  }
}

/** The end is known only when it is reached, so samples that may belong to the fade are held back. */
async function* fadedOut(
  blocks: AsyncIterable<AudioBlock>,
  fade: number,
  channelCount: number,
): AsyncGenerator<AudioBlock> {
  const held: AudioBlock[] = []
  let heldSamples = 0
  for await (const block of blocks) {
    held.push(block)
    heldSamples += block.channels[0]!.length
    for (let [first] = held; first && heldSamples - first.channels[0]!.length >= fade; [first] = held) {
      held.shift()
      heldSamples -= first.channels[0]!.length
      yield first
    }
  }
  // A fade longer than the audio begins at its start.
  const length = Math.min(fade, heldSamples)
  const rest = Array.from({ length: channelCount }, () => new Float32Array(heldSamples))
  let at = 0
  for (const { channels } of held) {
    rest.forEach((plane, channel) => plane.set(channels[channel]!, at))
    at += channels[0]!.length
  }
  for (const plane of rest)
    for (let i = heldSamples - length; i < heldSamples; i++) plane[i]! *= rise(heldSamples - 1 - i, length)
  if (heldSamples > 0) yield { channels: rest }
}

function rise(position: number, length: number): number {
  return position < length ? position / length : 1
}

async function* mixed(blocks: AsyncIterable<AudioBlock>): AsyncGenerator<AudioBlock> {
  for await (const {
    channels: [left, right],
  } of blocks)
    yield { channels: [left!.map((value, i) => (value + right![i]!) / 2)] }
}

async function* reordered(blocks: AsyncIterable<AudioBlock>, order: readonly number[]): AsyncGenerator<AudioBlock> {
  for await (const { channels } of blocks) yield { channels: order.map((channel) => channels[channel]!) }
}

async function* notEmpty(blocks: AsyncIterable<AudioBlock>): AsyncGenerator<AudioBlock> {
  let isEmpty = true
  for await (const block of blocks) {
    isEmpty = false
    yield block
  }
  if (isEmpty)
    throw badInput(
      'no_audio',
      'No audio is left. Choose a start before the end, a length of at least one sample, and a file that contains ' +
        'audio.',
    )
}
