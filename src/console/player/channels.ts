/** The audio path of one track. */
export interface Channel {
  gain: GainNode
  panner: StereoPannerNode
  meter: AnalyserNode
}

/** Samples that pass between two readings of the meter. */
export const meterSamples = 2048

type Context = Pick<AudioContext, 'createAnalyser' | 'createGain' | 'createStereoPanner'>

export function openChannel(context: Context, master: AudioNode, { volume = 1, pan = 0 } = {}): Channel {
  const gain = context.createGain()
  const panner = context.createStereoPanner()
  // Plays a mono track on both sides at its level.
  panner.channelCountMode = 'explicit'
  gain.gain.value = volume
  panner.pan.value = pan
  const meter = context.createAnalyser()
  meter.fftSize = meterSamples
  gain.connect(meter)
  gain.connect(panner)
  panner.connect(master)
  return { gain, panner, meter }
}
