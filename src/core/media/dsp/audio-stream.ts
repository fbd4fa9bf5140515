/** Position of a loudspeaker, named as in WAVE_FORMAT_EXTENSIBLE; back and side positions are not distinguished. */
export type Speaker = 'left' | 'right' | 'centre' | 'lfe' | 'surroundLeft' | 'surroundRight' | 'surroundCentre' | 'mono'

/**
 * A run of samples: one plane per channel, all of the same length, nominal range -1..1 (float sources may exceed it).
 */
export interface AudioBlock {
  channels: Float32Array[]
}

/**
 * Decoded audio as it streams through the pipeline. `blocks` can be iterated once; block sizes are arbitrary and never
 * zero. Nothing stays open between blocks, so a stream that is not read to its end need not be closed.
 */
export interface AudioStream {
  sampleRate: number
  channelCount: number
  /** Samples per channel that the source's header promises, if it does. A truncated file ends earlier. */
  sampleCount: number | undefined
  /** Length that the source states, if it does. The audio may turn out shorter or longer; `warnings` then says so. */
  statedSeconds?: number
  /** Sentences on what was lost or fixed while decoding; complete once `blocks` has been read to its end. */
  warnings?: readonly string[]
  /** Short name of the source's format, such as `wav` or `m4a`. */
  format: string
  blocks: AsyncIterable<AudioBlock>
  /**
   * Blocks from this sample on, for files with random access. Internal to `openAudio`, whose streams lack it.
   */
  blocksFrom?: (sample: number) => AsyncIterable<AudioBlock>
  /** Sample of the track with which `blocks` begins. Default: 0. */
  firstSample?: number
  /** Speaker of each channel, if it differs from the WAVE order for that channel count. */
  speakers?: readonly Speaker[]
  /** Fraction of the source's bytes read so far, 0..1: progress for sources of unknown length. */
  readFraction?: () => number
}
