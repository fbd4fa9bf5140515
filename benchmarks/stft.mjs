// The short-time Fourier transform and its inverse against FFTW in C (single precision, FFTW_MEASURE, -O3
// -march=native): one thread, CPU time, alternating. Needs gcc and FFTW (Debian: gcc libfftw3-dev); without them it
// prints a message and compares nothing.
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Stft } from '../build/core/media/dsp/stft.js'
import { middle } from './shared/benchmark.mjs'

const aim = 3
const rounds = 7
const frameCount = 256
/** Frame length, hop, and the architecture that uses both. */
const sizes = [
  [2048, 441, 'roformer'],
  [4096, 1024, 'htdemucs, scnet, umx, spleeter'],
  [5120, 1024, 'mdx'],
  [6144, 1024, 'mdx'],
  [7680, 1024, 'mdx'],
]
const layouts = {
  'frame by frame': (bins) => ({ frameStride: bins, binStride: 1 }),
  'bin by bin': () => ({ frameStride: 1, binStride: frameCount }),
}

const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
try {
  const program = compile(join(folder, 'fftw-stft'))
  console.log(
    `${cpus()[0]?.model.trim()}, load ${loadavg()[0].toFixed(1)} at the start; Node ${process.version}; forward and ` +
      `inverse, ${frameCount} frames a segment\n`,
  )
  console.log(`size   layout           µs a frame   FFTW   ratio (aim: at most ${aim}; median of ${rounds} rounds)`)
  for (const [size, hop, users] of sizes) {
    for (const [name, layoutOf] of Object.entries(layouts))
      await compare(program, size, hop, name, layoutOf(size / 2 + 1), users)
  }
} finally {
  await rm(folder, { recursive: true })
}

async function compare(program, size, hop, name, layout, users) {
  const segments = 8
  const round = await ours(size, hop, layout, segments)
  round()
  const pairs = []
  for (let index = 0; index < rounds; index++) {
    const theirs =
      program &&
      Number(
        execFileSync(program, [size, hop, frameCount, segments, 2].map(String), { encoding: 'utf8' })
          .trim()
          .split('\n')
          .at(-1),
      )
    pairs.push({ own: round(), theirs })
  }
  const perFrame = (milliseconds) => ((1000 * milliseconds) / frameCount / segments).toFixed(1)
  const ratio = middle(pairs.map(({ own, theirs }) => own / theirs))
  console.log(
    [
      String(size).padEnd(7),
      name.padEnd(15),
      perFrame(middle(pairs.map(({ own }) => own))).padStart(12),
      (program ? perFrame(middle(pairs.map(({ theirs }) => theirs))) : '-').padStart(7),
      (program ? `${ratio.toFixed(2)} ${ratio <= aim ? 'pass' : 'MISS'}` : '-').padStart(10),
      `   ${users}`,
    ].join(''),
  )
}

async function ours(size, hop, layout, segments) {
  const stft = await Stft.create({ size, hop })
  const signal = Float32Array.from({ length: stft.samplesOf(frameCount) }, () => Math.random() - 0.5)
  const restored = new Float32Array(signal.length)
  const [re, im] = [0, 1].map(() => new Float32Array(frameCount * (size / 2 + 1)))
  return () => {
    const before = process.cpuUsage()
    for (let segment = 0; segment < segments; segment++) {
      stft.forward(signal, frameCount, re, im, layout)
      stft.inverse(re, im, frameCount, layout, restored)
    }
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
}

function compile(program) {
  try {
    const source = join(import.meta.dirname, 'architectures/fftw-stft.c')
    execFileSync('gcc', ['-O3', '-march=native', '-ffast-math', source, '-o', program, '-lfftw3f', '-lm'], {
      stdio: 'pipe',
    })
    return program
  } catch (error) {
    console.log(
      `Not compared with FFTW, which needs gcc and libfftw3-dev: ${
        String(error.stderr ?? error)
          .trim()
          .split('\n')[0]
      }\n`,
    )
    return undefined
  }
}
