import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { analyzeWorkflow } from '../../src/core/workflows/analysis/analyze-workflow.js'
import { rhythmOf } from '../../src/core/media/analysis/rhythm.js'
import { beatLogitsReader } from '../../src/core/media/analysis/beats/beat-logits.js'
import { beatTimes } from '../../src/core/media/analysis/beats/beat-times.js'
import { LogMel } from '../../src/core/media/analysis/beats/log-mel.js'
import { processRunner } from '../../src/core/engine/runner/process-runner.js'
import { knownModels } from '../../src/core/models/known-models.js'
import { opened, orderOf, run } from '../runner/run-order.js'
import { onnxModel, type OnnxGraph } from '../separation/onnx-graph.js'
import { writeWav } from '../separation/tracks.js'
import { beatScore } from './rendered-piece.js'
import { temporaryFolder } from '../temporary-folder.js'

// The weights of Beat This! were not available where this library was made. The code around them is tested: the
// spectrogram against its definition, chunks and peaks against those of the authors' code, and a whole job with a
// network of the same inputs and outputs.

/**
 * Frame `index` as torchaudio's MelSpectrogram defines it (n_fft 1024, centre and reflect, mel scale `slaney`,
 * `frame_length`, power 1).
 */
function frameByDefinition(audio: Float32Array, index: number): number[] {
  const size = 1024
  const at = (i: number) => audio[i < 0 ? -i : i >= audio.length ? 2 * (audio.length - 1) - i : i]!
  const magnitudes = Array.from({ length: size / 2 + 1 }, (_, bin) => {
    let [re, im] = [0, 0]
    for (let i = 0; i < size; i++) {
      const value = (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size)) * at(index * 441 - size / 2 + i)
      re += value * Math.cos((2 * Math.PI * bin * i) / size)
      im -= value * Math.sin((2 * Math.PI * bin * i) / size)
    }
    return Math.hypot(re, im) / Math.sqrt(size)
  })
  const mel = (f: number) => (f < 1000 ? (3 * f) / 200 : 15 + (27 * Math.log(f / 1000)) / Math.log(6.4))
  const hertz = (m: number) => (m < 15 ? (200 * m) / 3 : 1000 * 6.4 ** ((m - 15) / 27))
  const points = Array.from({ length: 130 }, (_, i) => hertz(mel(30) + ((mel(11_000) - mel(30)) * i) / 129))
  return Array.from({ length: 128 }, (_, band) => {
    const sum = magnitudes.reduce((total, magnitude, bin) => {
      const f = (bin * 22_050) / size
      const up = (f - points[band]!) / (points[band + 1]! - points[band]!)
      const down = (points[band + 2]! - f) / (points[band + 2]! - points[band + 1]!)
      return total + magnitude * Math.max(0, Math.min(up, down))
    }, 0)
    return Math.log(1 + 1000 * sum)
  })
}

describe('the spectrogram', () => {
  it('follows its definition, even at both ends and in blocks of any size', async () => {
    let seed = 5
    const audio = Float32Array.from({ length: 5000 }, () => (seed = (seed * 16_807) % 2_147_483_647) / 2 ** 31 - 0.5)
    for (const block of [5000, 441, 37]) {
      const mel = await LogMel.create()
      const frames: Float32Array[] = []
      for (let from = 0; from < audio.length; from += block) frames.push(...mel.add(audio.subarray(from, from + block)))
      frames.push(...mel.finish())
      mel.close()
      expect(frames).toHaveLength(1 + Math.floor(5000 / 441))
      for (const index of [0, 1, 6, 10, 11])
        frameByDefinition(audio, index).forEach((value, band) => expect(frames[index]![band]).toBeCloseTo(value, 3))
    }
  })

  it('has no frames if the audio is shorter than the reflected part', async () => {
    const mel = await LogMel.create()
    expect([...mel.add(new Float32Array(512)), ...mel.finish()]).toEqual([])
    mel.close()
  })
})

describe('the chunks', () => {
  it.each<[number, [start: number, length: number][]]>([
    [1, [[-6, 13]]],
    [1488, [[-6, 1500]]],
    [
      1489,
      [
        [-6, 1500],
        [-5, 1500],
      ],
    ],
    [
      1494,
      [
        [-6, 1500],
        [0, 1500],
      ],
    ],
    [
      3000,
      [
        [-6, 1500],
        [1482, 1500],
        [1506, 1500],
      ],
    ],
  ])('of %d frames begin and end where the reference implementation cuts them', async (count, wanted) => {
    const chunks: number[][] = []
    const reader = beatLogitsReader(async (frames, frameCount) => {
      // The first band holds the number of the frame, starting at 1; silence is 0.
      const numbers = Array.from({ length: frameCount }, (_, i) => frames[128 * i])
      const first = numbers.findIndex((number) => number! > 0)
      chunks.push([numbers[first]! - 1 - first, frameCount])
      return { beat: Float32Array.from(numbers), downbeat: Float32Array.from(numbers, (number) => -number!) }
    })
    for (let i = 0; i < count; i++) await reader.add([new Float32Array(128).fill(i + 1)])
    const { beat, downbeat } = await reader.finish()
    expect([...beat]).toEqual(Array.from({ length: count }, (_, i) => i + 1))
    expect(downbeat.at(-1)).toBe(-count)
    expect(chunks).toEqual(wanted)
  })
})

describe('the peaks', () => {
  const logitsOf = (peaks: Record<number, number>, length = 60) =>
    Float32Array.from({ length }, (_, frame) => peaks[frame] ?? -1)

  it('are above zero and the highest within 70 ms; neighbours are merged; downbeats move to the nearest beat', () => {
    const beat = logitsOf({ 0: 1, 10: 2, 12: 3, 20: 0, 30: 1, 31: 1, 50: 4, 54: 3 })
    const downbeat = logitsOf({ 13: 2, 49: 1 })
    expect(beatTimes({ beat, downbeat })).toEqual({ beats: [0, 0.24, 0.61, 1, 1.08], downbeats: [0.24, 1] })
    expect(beatTimes({ beat: logitsOf({}), downbeat })).toEqual({ beats: [], downbeats: [] })
  })

  it('give tempo and bars, even across a missed beat', () => {
    const beats = [0, 0.5, 1, 1.5, 2.5, 3, 3.5, 4]
    expect(rhythmOf({ beats, downbeats: [0, 1.5, 3.5] })).toMatchObject({
      tempo: { bpm: 120, confidence: 0.857 },
      downbeats: { beatsPerBar: 3, confidence: 1 },
    })
    expect(rhythmOf({ beats: [1], downbeats: [1] })).toEqual({ tempo: null, beats: [1], downbeats: null })
  })
})

describe('service/analyze with a model of beats', () => {
  const folder = temporaryFolder()

  /** The logits are the level of a band: a beat for any click, a downbeat for a low one. */
  const clicks: OnnxGraph = {
    inputs: [{ name: 'spectrogram', shape: [1, 'frames', 128] }],
    outputs: [
      { name: 'downbeat', shape: [1, 'frames'] },
      { name: 'beat', shape: [1, 'frames'] },
    ],
    nodes: ['beat', 'downbeat'].flatMap((name) => [
      { operator: 'MatMul', inputs: ['spectrogram', `${name}-band`], outputs: [`${name}-sum`] },
      { operator: 'Sub', inputs: [`${name}-sum`, 'threshold'], outputs: [`${name}-over`] },
      { operator: 'Squeeze', inputs: [`${name}-over`, 'last'], outputs: [name] },
    ]),
    constants: [
      ...[100, 10].map((band, index) => ({
        name: `${['beat', 'downbeat'][index]}-band`,
        dims: [128, 1],
        values: Array.from({ length: 128 }, (_, i) => (i === band ? 1 : 0)),
      })),
      { name: 'threshold', dims: [1], values: [1] },
      { name: 'last', dims: [1], values: [2], type: 'int64' as const },
    ],
  }

  async function modelAt(name: string, network: Uint8Array, changes: Record<string, unknown> = {}): Promise<string> {
    const { facts } = knownModels.find((entry) => entry.facts.name === 'beat-this-small')!
    const path = join(folder, `${name}.json`)
    const file = {
      file: `${name}.onnx`,
      bytes: network.length,
      sha256: createHash('sha256').update(network).digest('hex'),
    }
    await writeFile(join(folder, `${name}.onnx`), network)
    await writeFile(path, JSON.stringify({ ...facts, name, ...file, ...changes }))
    return path
  }

  async function analysis(beats: string) {
    const rate = 22_050
    const audio = new Float32Array(40 * rate)
    const times: number[] = []
    for (let beat = 0; beat < 70; beat++) {
      const at = 1 + beat * 0.5
      times.push(at)
      for (let i = 0; i < 300; i++) {
        const envelope = Math.sin((Math.PI * i) / 300) ** 2
        const low = beat % 3 === 0 ? Math.sin((2 * Math.PI * 330 * i) / rate) : 0
        audio[Math.round(at * rate) - 150 + i] = 0.3 * envelope * (Math.sin((2 * Math.PI * 5000 * i) / rate) + low)
      }
    }
    const path = join(folder, 'song.wav')
    await writeWav(path, [audio], rate)
    const workflow = analyzeWorkflow({ beats })
    const runner = opened(processRunner({ resolve: () => workflow }))
    const { outputs, details } = await run(runner, await orderOf(workflow, { inputUrl: path }, folder))
    return { report: JSON.parse(await readFile(outputs.report!.path, 'utf8')), details, times }
  }

  it('takes beats, bars and tempo from the network, and names it in the details', async () => {
    const { report, details, times } = await analysis(await modelAt('clicks', onnxModel(clicks)))
    expect(beatScore(report.beats, times)).toBe(1)
    expect(report.tempo).toEqual({ bpm: expect.closeTo(120, 1), confidence: 1 })
    expect(report.downbeats).toMatchObject({ beatsPerBar: 3, confidence: 1 })
    expect(report.downbeats.times[1]).toBeCloseTo(2.5, 1)
    expect(details.beatModel).toMatchObject({ name: 'clicks', version: '1' })
  })

  it('refuses models that separate, networks that do not fit, and models that were not pulled', async () => {
    const other = { ...clicks, outputs: clicks.outputs.slice(0, 1) }
    await expect(analysis('embedded')).rejects.toThrow('finds no beats')
    await expect(analysis(await modelAt('odd', onnxModel(other)))).rejects.toThrow('does not find beats')
    await expect(analysis('beat-this-small')).rejects.toMatchObject({ code: 'MODEL_UNAVAILABLE' })
    expect(() => analyzeWorkflow({ beats: '' })).toThrow('expected the name of a model')
  })
})
