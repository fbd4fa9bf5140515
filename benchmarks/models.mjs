// Every pulled model, on songs whose stems are known: quality, time, memory and licence, as in the table of
// docs/models.md. Each model separates and is scored in its own process. Options:
//   --songs FOLDER  as for "stemwork evaluate" (default: ../shared/data/everything-is-free, or else the demo song)
//   --model NAME    only this model; a name or the path of a manifest; may be repeated
//   --threads N     of the networks (default: 1)
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { childEnvironment } from '../build/core/engine/runner/child-environment.js'
import { listModels, modelInfo } from '../build/core/models/index.js'
import { beatArchitecture } from '../build/core/models/manifest.js'

const root = join(import.meta.dirname, '..')
const songsAtHand = join(root, '../shared/data/everything-is-free')
const { values } = parseArgs({
  options: {
    songs: { type: 'string', default: existsSync(songsAtHand) ? songsAtHand : join(root, 'demo') },
    model: { type: 'string', multiple: true },
    threads: { type: 'string', default: '1' },
  },
})
const known = values.model
  ? await Promise.all(values.model.map((choice) => modelInfo(choice)))
  : (await listModels()).filter(({ architecture }) => architecture !== beatArchitecture)
let isFirst = true
for (const [index, { name, licence, installed }] of known.entries()) {
  if (!installed) continue
  const { summary, seconds, songs, peakMemoryBytes } = evaluate(values.model?.[index] ?? name)
  const [{ speed, falseVocals, ...scores }, mixture] = summary
  if (isFirst) printHead(songs, seconds, mixture)
  isFirst = false
  const pauses = falseVocals === null ? '-' : falseVocals.toFixed(1)
  const memory = `${Math.round(peakMemoryBytes / 2 ** 20)} MiB`
  console.log(`| ${[name, pair(scores), pauses, speed.toFixed(1), memory, licence].join(' | ')} |`)
}
const missing = known.filter(({ installed }) => !installed).map(({ name }) => name)
if (missing.length > 0) console.log(`\nNot pulled, so not measured: ${missing.join(', ')}.`)

function evaluate(model) {
  const settings = ['evaluate', values.songs, '--model', model, '--threads', values.threads, '--json']
  const env = childEnvironment(process.env)
  const stdio = ['ignore', 'pipe', 'inherit']
  return JSON.parse(
    execFileSync(process.execPath, [join(root, 'dist/cli/main.js'), ...settings], { env, stdio, encoding: 'utf8' }),
  )
}

function printHead(songs, seconds, mixture) {
  console.log(
    `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}; Node ` +
      `${process.version}; ${values.threads} thread(s); ${songs.map(({ song }) => song).join(', ')}, ` +
      `${Math.round(seconds)} s; the unprocessed mixture: ${pair(mixture)} dB\n\n` +
      '| model | uSDR, dB | false vocals, dB | x real time | peak memory | licence |\n|---|---:|---:|---:|---:|---|',
  )
}

function pair({ vocals, accompaniments }) {
  return `${vocals.uSdr.toFixed(2)} / ${accompaniments.uSdr.toFixed(2)}`
}
