// Networks of random weights with the true input and output shapes of every architecture. umx and spleeter also have
// the true layers and sizes. The others are a few convolutions that cost as much as the real network (scnet) or less,
// so that a table takes minutes; with the real ones the ratios are closer to 1. Billions of multiplications per
// segment:
//   mdx       66 instead of about 280 (11 blocks of three 3 x 3 convolutions of 48 to 288 channels)
//   scnet     110 like the real one (48 % of the time of HTDemucs for the same audio, according to its authors)
//   roformer  70 instead of about 1,400 (12 layers of 384 channels on 60 bands x 801 frames)
//   htdemucs  115 (2 s of processor time on the machine where the real one takes 4.6)
import { readFile } from 'node:fs/promises'
import ts from 'typescript'

const fourStems = ['drums', 'bass', 'other', 'vocals']

/**
 * Fields of the manifest and functions that write the files, by name. `longer`: factor by which
 * a fast network gets more audio, because it would have too few segments otherwise.
 */
export async function benchmarkNetworks() {
  const { onnxModel } = await graphWriter()
  const build = (describe) => () => onnxModel(describe(new Graph()))
  return {
    'mdx 7680/3072/256': {
      architecture: 'mdx',
      stft: { nFft: 7680 },
      primary: 'vocals',
      files: [build((graph) => convolutions(graph, ['batch', 4, 3072, 256], Array(5).fill(48), 4))],
    },
    scnet: {
      architecture: 'scnet',
      stems: fourStems,
      files: [build((graph) => convolutions(graph, [1, 4, 2049, 476], Array(4).fill(64), 16))],
    },
    umx: { longer: 4, architecture: 'umx', stems: ['vocals'], files: [build(openUnmix)] },
    'umx on a song': { longer: 6, architecture: 'umx', stems: ['vocals'], files: [build(openUnmix)] },
    spleeter: { longer: 4, architecture: 'spleeter', files: [build(spleeter), build(spleeter)] },
    'roformer by row': {
      architecture: 'roformer',
      stems: ['vocals'],
      files: [build((graph) => mixing(graph, [1, 2050, 801, 2], 9, [1, 1, 2050, 801, 2]))],
    },
    'roformer by frame': {
      architecture: 'roformer',
      stems: ['vocals'],
      files: [build((graph) => mixing(graph, [1, 801, 4100], 4, [1, 801, 4100]))],
    },
    'htdemucs of one input': {
      architecture: 'htdemucs',
      stems: fourStems,
      files: [build((graph) => htdemucs(graph, Array(5).fill(96), undefined))],
    },
    'htdemucs of two inputs': {
      architecture: 'htdemucs',
      stems: fourStems,
      files: [build((graph) => htdemucs(graph, [8], Array(9).fill(48)))],
    },
  }
}

/**
 * The shapes of htdemucs with a trivial network, for measurements that do not depend on it, such as memory by length.
 */
export async function cheapHtdemucs() {
  const { onnxModel } = await graphWriter()
  return { architecture: 'htdemucs', stems: fourStems, files: [() => onnxModel(htdemucs(new Graph(), [8], [1]))] }
}

/** Collects nodes and random weights. */
class Graph {
  nodes = []
  constants = []

  /** Adds a node and returns the name of its output value. */
  node(operator, inputs, attributes, output = `value${this.nodes.length}`) {
    this.nodes.push({ operator, inputs, outputs: [output], attributes })
    return output
  }

  weights(...dims) {
    const count = dims.reduce((product, dim) => product * dim, 1)
    const scale = 1 / Math.sqrt(count / dims[0])
    return this.#constant({ dims, values: Float32Array.from({ length: count }, () => (Math.random() - 0.5) * scale) })
  }

  shape(...values) {
    return this.#constant({ dims: [values.length], values, type: 'int64' })
  }

  #constant(constant) {
    const name = `constant${this.constants.length}`
    this.constants.push({ name, ...constant })
    return name
  }

  done(inputs, outputs) {
    const values = (shapes) => Object.entries(shapes).map(([name, shape]) => ({ name, shape }))
    return { inputs: values(inputs), outputs: values(outputs), nodes: this.nodes, constants: this.constants }
  }
}

/** 1 x 1 to the first of the hidden sizes, 3 x 3 between them, and 1 x 1 to the output. */
function plane(graph, input, channels, hidden, outputs, output) {
  let value = graph.node('Relu', [graph.node('Conv', [input, graph.weights(hidden[0], channels, 1, 1)])])
  for (let layer = 1; layer < hidden.length; layer++) {
    const weights = graph.weights(hidden[layer], hidden[layer - 1], 3, 3)
    value = graph.node('Relu', [graph.node('Conv', [value, weights], { pads: [1, 1, 1, 1] })])
  }
  return graph.node('Conv', [value, graph.weights(outputs, hidden.at(-1), 1, 1)], undefined, output)
}

function convolutions(graph, shape, hidden, outputs) {
  plane(graph, 'input', shape[1], hidden, outputs, 'output')
  return graph.done({ input: shape }, { output: shape.with(1, outputs) })
}

/** Mixes the second axis, through layers of 2,048 channels. */
function mixing(graph, input, layers, output) {
  const kernel = input.slice(2).map(() => 1)
  let value = 'input'
  for (let layer = 0; layer < layers; layer++) {
    const weights = graph.weights(2048, layer === 0 ? input[1] : 2048, ...kernel)
    value = graph.node('Relu', [graph.node('Conv', [value, weights])])
  }
  value = graph.node('Conv', [value, graph.weights(input[1], 2048, ...kernel)])
  graph.node('Reshape', [value, graph.shape(...output)], undefined, 'output')
  return graph.done({ input }, { output })
}

/**
 * @param hidden channels of the convolutions (9 samples wide) of the waveform, and of those of the spectrum; without
 * the latter, the network takes no spectrum
 */
function htdemucs(graph, [first, ...rest], spectrum) {
  const samples = 343_980
  let value = graph.node('Relu', [graph.node('Conv', ['mix', graph.weights(first, 2, 9)], { pads: [4, 4] })])
  for (const size of rest)
    value = graph.node('Relu', [graph.node('Conv', [value, graph.weights(size, first, 9)], { pads: [4, 4] })])
  value = graph.node('Conv', [value, graph.weights(8, first, 1)])
  graph.node('Reshape', [value, graph.shape(1, 4, 2, samples)], undefined, 'waves')
  const [inputs, outputs] = [{ mix: [1, 2, samples] }, { waves: [1, 4, 2, samples] }]
  if (!spectrum) return graph.done(inputs, outputs)
  const spectra = plane(graph, 'spectrum', 4, spectrum, 16)
  graph.node('Reshape', [spectra, graph.shape(1, 4, 4, 2048, 336)], undefined, 'spectra')
  return graph.done({ ...inputs, spectrum: [1, 4, 2048, 336] }, { spectra: [1, 4, 4, 2048, 336], ...outputs })
}

/**
 * Open-Unmix HQ: the bins below 16 kHz to 512 values, three bidirectional LSTMs with a skip connection, and a mask for
 * all bins.
 */
function openUnmix(graph) {
  const [bins, heard, frames, hidden] = [2049, 1487, 512, 512]
  const shape = [1, 2, bins, frames]
  const below = graph.node('Slice', ['input', graph.shape(0), graph.shape(heard), graph.shape(2)])
  const rows = graph.node('Reshape', [
    graph.node('Transpose', [below], { perm: [3, 0, 1, 2] }),
    graph.shape(frames, 2 * heard),
  ])
  const encoded = graph.node('Tanh', [graph.node('MatMul', [rows, graph.weights(2 * heard, hidden)])])
  const sequence = graph.node('Reshape', [encoded, graph.shape(frames, 1, hidden)])
  let value = sequence
  for (let layer = 0; layer < 3; layer++) {
    const weights = [graph.weights(2, 2 * hidden, hidden), graph.weights(2, 2 * hidden, hidden / 2)]
    const directions = graph.node('LSTM', [value, ...weights], { hidden_size: hidden / 2, direction: 'bidirectional' })
    value = graph.node('Reshape', [
      graph.node('Transpose', [directions], { perm: [0, 2, 1, 3] }),
      graph.shape(frames, 1, hidden),
    ])
  }
  const joined = graph.node('Reshape', [
    graph.node('Concat', [sequence, value], { axis: 2 }),
    graph.shape(frames, 2 * hidden),
  ])
  const decoded = graph.node('Relu', [graph.node('MatMul', [joined, graph.weights(2 * hidden, hidden)])])
  const mask = graph.node('Relu', [graph.node('MatMul', [decoded, graph.weights(hidden, 2 * bins)])])
  const planes = graph.node('Transpose', [graph.node('Reshape', [mask, graph.shape(frames, 1, 2, bins)])], {
    perm: [1, 2, 3, 0],
  })
  graph.node('Mul', ['input', planes], undefined, 'output')
  return graph.done({ input: shape }, { output: shape })
}

/** Spleeter's U-Net: six 5 x 5 convolutions halve both axes, six double them with skip connections; then a mask. */
function spleeter(graph) {
  const shape = [2, 1, 512, 1024]
  const halves = { strides: [2, 2], pads: [1, 1, 2, 2] }
  const channels = [2, 16, 32, 64, 128, 256, 512]
  const steps = [graph.node('Transpose', ['input'], { perm: [1, 0, 2, 3] })]
  for (let level = 1; level < channels.length; level++) {
    const weights = graph.weights(channels[level], channels[level - 1], 5, 5)
    steps.push(graph.node('LeakyRelu', [graph.node('Conv', [steps[level - 1], weights], halves)]))
  }
  let value = steps.at(-1)
  for (let level = channels.length - 1; level > 0; level--) {
    const isInnermost = level === channels.length - 1
    if (!isInnermost) value = graph.node('Concat', [steps[level], value], { axis: 1 })
    const weights = graph.weights(isInnermost ? channels[level] : 2 * channels[level], channels[level - 1], 5, 5)
    value = graph.node('Relu', [graph.node('ConvTranspose', [value, weights], halves)])
  }
  const masked = graph.node('Mul', [steps[0], graph.node('Sigmoid', [value])])
  graph.node('Transpose', [masked], { perm: [1, 0, 2, 3] }, 'output')
  return graph.done({ input: shape }, { output: shape })
}

/** The ONNX writer of the tests. */
async function graphWriter() {
  const source = await readFile(new URL('../../test/separation/onnx-graph.ts', import.meta.url), 'utf8')
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  })
  return import(`data:text/javascript,${encodeURIComponent(outputText)}`)
}
