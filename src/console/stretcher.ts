import type { PlayerOutput } from './scheduled-output.js'

export interface StretcherOptions {
  partCount: number
  tempo: number
  semitones: number
}

export type ToStretcher =
  /** Two planes for each track, and where they lie in the tracks, in seconds. */
  | { kind: 'piece'; planes: Float32Array[]; position: number }
  | { kind: 'tempo'; tempo: number }
  | { kind: 'end' }
  | { kind: 'close' }

/** What is heard from a time of the audio clock on, and how many seconds of the tracks are ready after it. */
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

/** Tracks at another tempo and pitch, made on the audio thread. */
export class Stretcher implements PlayerOutput {
  readonly #node: AudioWorkletNode
  readonly #ended: Promise<void>
  readonly #sampleRate: number
  ahead = 0

  /**
   * @param targets where each track goes
   * @throws where the script of the audio thread cannot be loaded
   */
  static async open(
    context: BaseAudioContext,
    options: StretcherOptions,
    targets: readonly (AudioNode | undefined)[],
    onMark: (mark: StretchMark) => void,
  ): Promise<Stretcher> {
    await openScript(context)
    const stretcher = new Stretcher(context, options, onMark)
    targets.forEach((target, output) => target && stretcher.#node.connect(target, output))
    return stretcher
  }

  private constructor(context: BaseAudioContext, options: StretcherOptions, onMark: (mark: StretchMark) => void) {
    const { partCount } = options
    this.#sampleRate = context.sampleRate
    this.#node = new AudioWorkletNode(context, 'stemwork-stretch', {
      numberOfInputs: 0,
      numberOfOutputs: partCount,
      outputChannelCount: Array.from({ length: partCount }, () => 2),
      processorOptions: options,
    })
    this.#ended = new Promise((resolve) => {
      this.#node.port.onmessage = ({ data }: MessageEvent<FromStretcher>) => {
        if (data.kind === 'ended') return resolve()
        this.ahead = data.ahead
        onMark(data)
      }
    })
  }

  give(tracks: readonly Float32Array[][], position: number, frames: number): void {
    const planes = tracks.flatMap(([left, right = left]) =>
      // A track that is shorter than the others ends in silence.
      [left, right].map((plane) => {
        const copy = new Float32Array(frames)
        if (plane) copy.set(plane)
        return copy
      }),
    )
    this.ahead += frames / this.#sampleRate
    this.#post(
      { kind: 'piece', planes, position },
      planes.map(({ buffer }) => buffer),
    )
  }

  setTempo(tempo: number): void {
    this.#post({ kind: 'tempo', tempo })
  }

  end(): Promise<void> {
    this.#post({ kind: 'end' })
    return this.#ended
  }

  stop(): void {
    this.#post({ kind: 'close' })
    this.#node.disconnect()
  }

  #post(message: ToStretcher, transfer: Transferable[] = []): void {
    this.#node.port.postMessage(message, transfer)
  }
}
