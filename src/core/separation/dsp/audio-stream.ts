/** Where a loudspeaker stands; the names are those of WAVE_FORMAT_EXTENSIBLE, back and side taken as one. */
export type Speaker = 'left' | 'right' | 'centre' | 'lfe' | 'surroundLeft' | 'surroundRight' | 'surroundCentre' | 'mono'

/** A run of samples: one plane per channel, all of the same length, nominal range -1..1 (float sources may exceed it). */
export interface AudioBlock {
  channels: Float32Array[]
}

/**
 * Decoded audio on its way through the pipeline. `blocks` can be iterated once; block sizes are arbitrary and never zero.
 * Nothing is held open between two blocks, so a stream that is not read to its end needs no closing.
 */
export interface AudioStream {
  sampleRate: number
  channelCount: number
  /** Samples per channel that the source's header promises, if it does. A truncated file ends earlier. */
  sampleCount: number | undefined
  /** Short name of the source's format, such as `wav` or `m4a`. */
  format: string
  blocks: AsyncIterable<AudioBlock>
  /** Speaker of each channel where it differs from the WAVE order for that many channels. */
  speakers?: readonly Speaker[]
  /** Share of the source's bytes read so far, 0..1: progress for sources whose length is not known. */
  readFraction?: () => number
}
