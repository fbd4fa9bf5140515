// Accuracy of chords and sections, on songs drawn by seed and rendered by fluidsynth, so that the truth is known. The
// method was fitted to seeds 1 to 60; seeds from 3000 on are held out: nothing was ever fitted to them. node
// benchmarks/harmony.mjs [--seeds=3000-3099] [--soundfont=file.sf2] [--verbose]
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { analyzeAudio } from '../build/core/media/analysis/analyze-audio.js'
import { openAudio } from '../build/core/media/decode/open-audio.js'
import { song } from './analysis/songs.mjs'
import { option } from './shared/benchmark.mjs'

const isVerbose = process.argv.includes('--verbose')
const [firstSeed, lastSeed] = option('seeds', '3000-3099').split('-').map(Number)
const soundfont = option('soundfont', '/usr/share/sounds/sf2/FluidR3_GM.sf2')
/** Tolerance for a section border, as in the evaluations of MIREX. */
const borderSeconds = 3

const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
try {
  console.log(`${cpus()[0]?.model.trim()}; Node ${process.version}; seeds ${firstSeed} to ${lastSeed}; ${soundfont}`)
  const rows = []
  for (let seed = firstSeed; seed <= lastSeed; seed++) {
    const truth = song(seed)
    const found = await analyzeAudio(await openAudio(await rendered(truth.midi)))
    rows.push({ ...chordScores(truth, found.chords), ...sectionScores(truth, found.sections) })
    if (isVerbose) console.log(seed, JSON.stringify(rows.at(-1)), labels(truth.sections), labels(found.sections))
  }
  const sum = (name) => rows.reduce((total, row) => total + row[name], 0)
  const percent = (part, whole) => `${((100 * sum(part)) / sum(whole)).toFixed(1)} %`
  console.log(`${rows.length} songs, ${Math.round(sum('seconds') / 60)} minutes`)
  console.log(
    `chords, share of time: triad correct ${percent('triad', 'seconds')}, whole chord ${percent('exact', 'seconds')}`,
  )
  console.log(
    `  whole chord where it is a triad ${percent('exactTriads', 'triads')}, ` +
      `a seventh ${percent('exactSevenths', 'sevenths')}, no chord ${percent('exactNone', 'none')}; ` +
      `chords missed ${percent('missed', 'seconds')}`,
  )
  console.log(
    `sections: F of pairs of seconds ${(sum('pairs') / rows.length).toFixed(3)}, ` +
      `F of boundaries within ${borderSeconds} s ${(sum('borders') / rows.length).toFixed(3)}`,
  )
} finally {
  await rm(folder, { recursive: true })
}

async function rendered(midi) {
  const [source, path] = ['song.mid', 'song.wav'].map((name) => join(folder, name))
  await writeFile(source, midi)
  const args = ['-ni', '-q', '-g', '0.6', '-r', '44100', '-F', path, soundfont, source]
  const { status, error, stderr } = spawnSync('fluidsynth', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`fluidsynth is needed, with a soundfont: ${error?.message ?? stderr}`)
  return path
}

function chordScores(truth, found) {
  const scores = { seconds: 0, triad: 0, exact: 0, triads: 0, exactTriads: 0, sevenths: 0, exactSevenths: 0 }
  Object.assign(scores, { none: 0, exactNone: 0, missed: 0 })
  for (const chord of truth.chords) {
    const kind = chord.name === 'N' ? 'none' : chord.name.endsWith('7') ? 'sevenths' : 'triads'
    for (const { start, end, name } of found) {
      const seconds = Math.min(end, chord.end) - Math.max(start, chord.start)
      if (seconds <= 0) continue
      scores.seconds += seconds
      scores[kind] += seconds
      if (triadOf(name) === triadOf(chord.name)) scores.triad += seconds
      if (name === 'N' && kind !== 'none') scores.missed += seconds
      if (name !== chord.name) continue
      scores.exact += seconds
      scores[`exact${kind[0].toUpperCase()}${kind.slice(1)}`] += seconds
    }
  }
  return scores
}

function triadOf(name) {
  return name.replace(/(maj)?7$/, '')
}

/** Scores pairs of seconds that share a label, as MIREX does, and the borders between sections of different labels. */
function sectionScores(truth, found) {
  const labelsOf = (sections) =>
    Array.from(
      { length: Math.floor(truth.seconds) },
      (_, second) => sections.find(({ end }) => second + 0.5 < end)?.label,
    )
  const [expected, given] = [labelsOf(truth.sections), labelsOf(found)]
  let [same, inTruth, inFound] = [0, 0, 0]
  for (let i = 0; i < expected.length; i++)
    for (let j = i + 1; j < expected.length; j++) {
      const [isOne, isOther] = [expected[i] === expected[j], given[i] === given[j]]
      inTruth += isOne
      inFound += isOther
      same += isOne && isOther
    }
  const borders = (sections) =>
    sections.filter(({ label }, i) => i > 0 && label !== sections[i - 1].label).map(({ start }) => start)
  const [right, told] = [borders(truth.sections), borders(found)]
  const hits = right.filter((time) => told.some((other) => Math.abs(other - time) <= borderSeconds)).length
  return {
    pairs: (2 * same) / Math.max(1, inTruth + inFound),
    borders: right.length + told.length > 0 ? (2 * hits) / (right.length + told.length) : 1,
  }
}

function labels(sections) {
  return sections.map(({ label, start }) => `${label}${Math.round(start)}`).join(' ')
}
