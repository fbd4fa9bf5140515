// Time and memory compared with widely used Python programs: audio-separator (MDX) and demucs (HTDemucs). The same
// file, network, segments, overlap and number of threads; each run is its own process. Timed is the work alone,
// from the open file and the loaded network to the written stems; memory is the peak of the whole process. Options:
//   --python PATH a Python with torch, demucs, audio-separator, onnxruntime and soundfile (default:
//                 STEMWORK_PEERS_PYTHON, or python3)
//   --seconds N   length of the input (default 60)
//   --rounds N    runs of each, in turn; the median counts (default 3)
//   --threads N   of the networks (default: the library's own)
// The MDX network has random weights: its graph is the same file for both. HTDemucs is that of the pulled model
// `htdemucs` here, and there the same network in PyTorch with random weights, which take the same time.
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { defaultThreads } from '../build/core/models/session/session.js'
import { inChild } from './architectures/child.mjs'
import { writeModel, writeNoise } from './architectures/files.mjs'
import { benchmarkNetworks } from './architectures/networks.mjs'
import { machine } from './shared/benchmark.mjs'

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: process.env.STEMWORK_PEERS_PYTHON ?? 'python3' },
    seconds: { type: 'string', default: '60' },
    rounds: { type: 'string', default: '3' },
    threads: { type: 'string', default: String(defaultThreads()) },
  },
})
const [seconds, rounds, threads] = [values.seconds, values.rounds, values.threads].map(Number)
const mdx = 'mdx 7680/3072/256'
const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
try {
  console.log(`${machine()}; Node ${process.version}`)
  console.log(`${seconds} s of noise, stereo, 44.1 kHz; ${threads} thread(s); median of ${rounds} rounds\n`)
  const input = await writeNoise(folder, seconds)
  const { [mdx]: network } = await benchmarkNetworks()
  const mdxFolder = await writeModel(folder, 'mdx', network)
  console.log(`network    program                time   processor time        peak`)
  await compare('MDX', mdxFolder, 'audio-separator', 'mdx.py', [join(mdxFolder, '0.onnx')])
  await compare('HTDemucs', 'htdemucs', 'demucs', 'htdemucs.py', [])

  async function compare(network, model, peer, script, settings) {
    const [ours, theirs] = [[], []]
    for (let round = 0; round < rounds; round++) {
      ours.push(await inChild('separate', { input, model, folder, threads, format: '32f' }))
      theirs.push(runPython(script, [input, folder, String(threads), ...settings]))
    }
    const [own, its] = [middle(ours), middle(theirs)]
    report(network, 'stemwork', own)
    report(network, peer, its)
    const ratio = (field) => (own[field] / its[field]).toFixed(2)
    console.log(`${' '.repeat(11)}ours / theirs: ${ratio('ms')}, ${ratio('cpuMs')}, ${ratio('peakBytes')}`)
  }
} finally {
  await rm(folder, { recursive: true })
}

function runPython(script, settings) {
  const printed = execFileSync(values.python, [join(import.meta.dirname, 'peers', script), ...settings], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return JSON.parse(printed.trim().split('\n').at(-1))
}

function report(network, program, { ms, cpuMs, peakBytes }) {
  const time = `${(ms / 1000).toFixed(1)} s`.padStart(11)
  const processor = `${(cpuMs / 1000).toFixed(1)} s`.padStart(17)
  const peak = `${Math.round(peakBytes / 2 ** 20)} MiB`.padStart(12)
  console.log(network.padEnd(11) + program.padEnd(16) + time + processor + peak)
}

/** The run with the median time. */
function middle(runs) {
  return [...runs].sort((a, b) => a.ms - b.ms)[runs.length >> 1]
}
