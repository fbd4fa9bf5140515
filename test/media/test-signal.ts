import { fileURLToPath } from 'node:url'

/**
 * The signal that `test/fixtures/make-audio.sh` encodes, recomputed: one second, with a bell-shaped level around 0.5 s.
 */
export function testSignal(sampleRate: number): Float32Array[] {
  return [
    [0.5, 440],
    [0.4, 1000],
  ].map(([level, hertz]) =>
    Float32Array.from({ length: sampleRate }, (_, i) => {
      const t = i / sampleRate
      return level! * Math.sin(2 * Math.PI * hertz! * t) * Math.exp(-40 * (t - 0.5) ** 2)
    }),
  )
}

/** 10 log10 of the signal's energy over the energy of the difference, over the signal's length. */
export function signalToNoise(signal: Float32Array, other: Float32Array): number {
  let energy = 0
  let error = 0
  for (let i = 0; i < signal.length; i++) {
    energy += signal[i]! ** 2
    error += (signal[i]! - other[i]!) ** 2
  }
  return 10 * Math.log10(energy / error)
}

export function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/audio/${name}`, import.meta.url))
}
