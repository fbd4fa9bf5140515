import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { manifestOf, separateWith, stereoMusic } from './architecture-run.js'
import { testNetworks } from './networks.js'
import { onnxModel, type OnnxGraph } from './onnx-graph.js'
import { pythonWith } from './peers.js'
import { noise, readAudio, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

// The same random weights in the pipelines of widely used programs. The networks are small; everything around them is
// compared: segments, spectra, normalization, overlap-add.

const load = testNetworks()
const rate = 44_100
const folder = temporaryFolder()

/** Runs a script in the folder; it reads `mix.wav` and writes float files. */
async function runPython(python: string, script: string): Promise<void> {
  await writeFile(join(folder, 'peer.py'), script)
  execFileSync(python, ['peer.py'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
}

function worst(
  one: Float32Array[],
  other: Float32Array[],
  isCompared: (sample: number) => boolean = () => true,
): number {
  let most = one[0]!.length === other[0]!.length ? 0 : Infinity
  one.forEach((plane, channel) => {
    for (let i = 0; i < plane.length; i++)
      if (isCompared(i)) most = Math.max(most, Math.abs(plane[i]! - other[channel]![i]!))
  })
  return most
}

const demucsPython = pythonWith('torch', 'demucs', 'soundfile', 'numpy')

describe.skipIf(demucsPython === undefined)('demucs (skipped without Python with demucs and torch)', () => {
  const [samples, hop] = [10_000, 128]
  const bins = 2 * hop
  const frames = Math.ceil(samples / hop)
  const kernel = noise(8 * 2 * 15, 3).map((value) => 0.3 * value)
  const gains = noise(4 * bins, 4).map((value) => 20 * value)
  const waves: OnnxGraph = {
    inputs: [{ name: 'mix', shape: [1, 2, samples] }],
    outputs: [{ name: 'waves', shape: [1, 4, 2, samples] }],
    nodes: [
      { operator: 'Conv', inputs: ['mix', 'kernel'], outputs: ['filtered'], attributes: { pads: [7, 7] } },
      { operator: 'Tanh', inputs: ['filtered'], outputs: ['bent'] },
      { operator: 'Reshape', inputs: ['bent', 'shape'], outputs: ['waves'] },
    ],
    constants: [
      { name: 'kernel', dims: [8, 2, 15], values: kernel },
      { name: 'shape', dims: [4], values: [1, 4, 2, samples], type: 'int64' },
    ],
  }
  const both: OnnxGraph = {
    inputs: [...waves.inputs, { name: 'spectrum', shape: [1, 4, bins, frames] }],
    outputs: [{ name: 'spectra', shape: [1, 4, 4, bins, frames] }, ...waves.outputs],
    nodes: [
      ...waves.nodes,
      { operator: 'Mul', inputs: ['spectrum', 'gains'], outputs: ['scaled'] },
      { operator: 'Sigmoid', inputs: ['scaled'], outputs: ['mask'] },
      { operator: 'Mul', inputs: ['mask', 'spectrum'], outputs: ['spectra'] },
    ],
    constants: [...(waves.constants ?? []), { name: 'gains', dims: [1, 4, 1, bins, 1], values: gains }],
  }
  const script = (hasSpectrum: boolean) => `
import numpy, soundfile, torch
from fractions import Fraction
from demucs.apply import apply_model
from demucs.htdemucs import HTDemucs
class Network(HTDemucs):
    def __init__(self):
        torch.nn.Module.__init__(self)
        self.samplerate, self.segment = ${rate}, Fraction(${samples}, ${rate})
        self.sources = ['drums', 'bass', 'other', 'vocals']
        self.nfft, self.hop_length, self.cac, self.wiener_iters = ${4 * hop}, ${hop}, True, 0
        self.kernel = torch.from_numpy(numpy.fromfile('kernel.raw', 'float32').reshape(8, 2, 15))
        self.gains = torch.from_numpy(numpy.fromfile('gains.raw', 'float32').reshape(1, 4, 1, ${bins}, 1))
    def valid_length(self, length):
        return ${samples}
    def forward(self, mix):
        wave = torch.tanh(torch.nn.functional.conv1d(mix, self.kernel, padding=7)).view(1, 4, 2, -1)
        if not ${hasSpectrum ? 'True' : 'False'}:
            return wave
        z = self._spec(mix)
        m = self._magnitude(z).unsqueeze(1)
        return wave + self._ispec(self._mask(z, torch.sigmoid(self.gains * m) * m), mix.shape[-1])
wav = torch.from_numpy(soundfile.read('mix.wav', dtype='float32')[0].T.copy())
ref = wav.mean(0)
wav = (wav - ref.mean()) / (ref.std() + 1e-8)
out = apply_model(Network(), wav[None], shifts=0, split=True, overlap=0.25)[0] * (ref.std() + 1e-8) + ref.mean()
for name, stem in zip(('drums', 'bass', 'other', 'vocals'), out):
    soundfile.write(f'demucs-{name}.wav', stem.numpy().T, ${rate}, 'FLOAT')
`

  it.each([
    ['waves', waves],
    ['waves and spectra', both],
  ])('gives the same four stems of %s to 1e-4, with its own segments, weights and spectra', async (name, graph) => {
    // Long enough not to be covered by the segment before: for such an end, demucs makes another one, which we save.
    const mixture = stereoMusic(49_321)
    await writeWav(join(folder, 'mix.wav'), mixture, rate)
    await writeFile(join(folder, 'kernel.raw'), kernel)
    await writeFile(join(folder, 'gains.raw'), gains)
    await runPython(demucsPython ?? '', script(name !== 'waves'))
    const stems = ['drums', 'bass', 'other', 'vocals'] as const
    const model = { manifest: manifestOf('htdemucs', { stems }), networks: [await load(graph)] }
    const found = await separateWith(model, mixture, { outputs: [...stems] })
    for (const stem of stems) {
      const { channels } = await readAudio(join(folder, `demucs-${stem}.wav`))
      expect(worst(found[stem], channels), stem).toBeLessThan(1e-4)
      expect(Math.max(...channels[0]!.subarray(20_000, 21_000).map(Math.abs))).toBeGreaterThan(0.01)
    }
  })
})

const mdxPython = pythonWith('torch', 'audio_separator', 'onnxruntime', 'soundfile', 'numpy')

describe.skipIf(mdxPython === undefined)('audio-separator (skipped without Python with it)', () => {
  const [nFft, hop, bins, frames] = [2048, 1024, 768, 65]
  const weights = noise(bins * bins, 8).map((value, i) => (Math.abs((i % bins) - Math.floor(i / bins)) < 4 ? value : 0))
  const graph: OnnxGraph = {
    inputs: [{ name: 'input', shape: ['batch', 4, bins, frames] }],
    outputs: [{ name: 'output', shape: ['batch', 4, bins, frames] }],
    nodes: [
      { operator: 'MatMul', inputs: ['weights', 'input'], outputs: ['mixed'] },
      { operator: 'Sigmoid', inputs: ['mixed'], outputs: ['mask'] },
      { operator: 'Mul', inputs: ['mask', 'input'], outputs: ['output'] },
    ],
    constants: [{ name: 'weights', dims: [bins, bins], values: weights }],
  }
  // The separator's own demix, with the settings that it usually reads from a model's file and its command line.
  const script = `
import logging, sys, types
import numpy, onnxruntime, soundfile, torch
sys.modules.setdefault('onnx2torch', types.ModuleType('onnx2torch'))
from audio_separator.separator.architectures.mdx_separator import MDXSeparator
own = MDXSeparator.__new__(MDXSeparator)
own.logger, own.torch_device = logging.getLogger('peer'), torch.device('cpu')
own.n_fft, own.hop_length, own.segment_size, own.dim_f = ${nFft}, ${hop}, ${frames}, ${bins}
own.overlap, own.batch_size, own.enable_denoise, own.compensate = 0.5, 1, False, 1.0
session = onnxruntime.InferenceSession('network.onnx', providers=['CPUExecutionProvider'])
own.model_run = lambda spek: session.run(None, {'input': spek.cpu().numpy()})[0]
mix = soundfile.read('mix.wav', dtype='float32')[0].T.copy()
out = own.demix(mix)
soundfile.write('mdx.wav', numpy.asarray(out).reshape(2, -1).T.astype('float32'), ${rate}, 'FLOAT')
`

  it('gives the same primary stem to 1e-4, except where its segments end without their context', async () => {
    const mixture = stereoMusic(300_000)
    await writeWav(join(folder, 'mix.wav'), mixture, rate)
    await writeFile(join(folder, 'network.onnx'), onnxModel(graph))
    await runPython(mdxPython ?? '', script)
    const manifest = manifestOf('mdx', { stft: { nFft, hop }, primary: 'vocals' })
    const { vocals } = await separateWith({ manifest, networks: [await load(graph)] }, mixture)
    const { channels } = await readAudio(join(folder, 'mdx.wav'))
    // It reflects each segment of 65536 samples at its ends and gives the ends little weight; we leave them out.
    const segmentStep = (hop * (frames - 1)) / 2
    const isInside = (sample: number) => {
      const place = (sample + nFft / 2) % segmentStep
      return sample > 2 * nFft && sample < 300_000 - segmentStep && place > 2 * nFft && place < segmentStep - 2 * nFft
    }
    expect(worst(vocals, channels, isInside)).toBeLessThan(1e-4)
    expect(Math.max(...channels[0]!.subarray(20_000, 21_000).map(Math.abs))).toBeGreaterThan(0.01)
  })
})
