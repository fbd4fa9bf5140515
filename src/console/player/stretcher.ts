import type { PlayerOutput } from './scheduled-output.js'

export interface StretcherOptions {
  partCount: number
  tempo: number
  semitones: number
}

export type ToStretcher =
  /** Two planes for each track, and their position in the tracks, in seconds. */
  | { kind: 'piece'; planes: Float32Array[]; position: number }
  | { kind: 'tempo'; tempo: number }
  | { kind: 'end' }
  | { kind: 'close' }

/** Position that plays from a time of the audio clock on, and the seconds of the tracks that are ready after it. */
export interface StretchMark {
  at: number
  position: number
  tempo: number
  ahead: number
}

export type FromStretcher = ({ kind: 'mark' } & StretchMark) | { kind: 'ended' }

const opened = new WeakMap<BaseAudioContext, Promise<void>>()

function openScript(context: BaseAudioContext): Promise<void> {
  const known = opened.get(context)
  if (known) return known
  const opening = context.audioWorklet.addModule(new URL('stretch-processor.js', import.meta.url))
  opened.set(context, opening)
  opening.catch(() => opened.delete(context))
  return opening
}

/** Keeps the output within full scale: stretched or transposed tracks do not add up as they did before. */
export async function openLimiter(context: BaseAudioContext): Promise<AudioNode> {
  await openScript(context)
  return new AudioWorkletNode(context, 'stemwork-limit', { outputChannelCount: [2] })
}

/**
 * Plays tracks at another tempo and pitch, computed on the audio thread.
 *
 * @param targets audio node for each track
 * @throws if the script of the audio thread cannot be loaded
 */
export async function openStretcher(
  context: BaseAudioContext,
  options: StretcherOptions,
  targets: readonly (AudioNode | undefined)[],
  onMark: (mark: StretchMark) => void,
): Promise<PlayerOutput> {
  await openScript(context)
  const { partCount } = options
  const node = new AudioWorkletNode(context, 'stemwork-stretch', {
    numberOfInputs: 0,
    numberOfOutputs: partCount,
    outputChannelCount: Array.from({ length: partCount }, () => 2),
    processorOptions: options,
  })
  targets.forEach((target, output) => target && node.connect(target, output))
  const post = (message: ToStretcher, transfer: Transferable[] = []) => node.port.postMessage(message, transfer)
  let ahead = 0
  const ended = new Promise<void>((resolve) => {
    node.port.onmessage = ({ data }: MessageEvent<FromStretcher>) => {
      if (data.kind === 'ended') return resolve()
      ahead = data.ahead
      onMark(data)
    }
  })
  return {
    get ahead() {
      return ahead
    },
    give(tracks, position, frames) {
      const planes = tracks.flatMap(([left, right = left]) =>
        // A track that is shorter than the others ends in silence.
        [left, right].map((plane) => {
          const copy = new Float32Array(frames)
          if (plane) copy.set(plane)
          return copy
        }),
      )
      ahead += frames / context.sampleRate
      post(
        { kind: 'piece', planes, position },
        planes.map(({ buffer }) => buffer),
      )
    },
    setTempo: (tempo) => post({ kind: 'tempo', tempo }),
    end() {
      post({ kind: 'end' })
      return ended
    },
    stop() {
      post({ kind: 'close' })
      node.disconnect()
    },
  }
}
