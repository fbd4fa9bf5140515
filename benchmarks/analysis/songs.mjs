// Songs with known chords and sections, as Standard MIDI files: triads and sevenths in changing inversions, one or two
// per bar, bars of drums alone, and sections that return. A seed determines every choice.
import {
  bassPrograms,
  closedHat,
  crash,
  drumPatterns,
  harmonyPrograms,
  melodyPrograms,
  midiFile,
  names,
  randomBy,
  scales,
} from './pieces.mjs'

/** `-` is a section of drums alone, or silence. */
const forms = ['AABA', 'ABAB', 'ABABCB', 'AABBA', '-ABABB', 'ABA-BA', 'ABCABC', 'AAB-AB']
const barsOfSection = 8
/** Degrees of the scale, for four bars. */
const progressions = {
  major: ['0453', '0534', '0344', '0304', '5340', '1403', '3045', '0251', '5034', '3400', '1450', '0153'],
  minor: ['0526', '0340', '0654', '5603', '0362', '3605', '0306', '2650', '0644', '3560', '0230', '5340'],
}
const sevenths = { major: { '4,7,11': 'maj7', '4,7,10': '7' }, minor: { '3,7,10': 'm7' } }

/**
 * Draws a song. The same seed gives the same song.
 *
 * @returns its MIDI file; `chords` as `{ start, end, name }` ("N" for no chord); `sections` as `{ start, end, label }`
 */
export function song(seed) {
  const random = randomBy(seed + 70_000)
  const pick = (list) => list[Math.floor(random() * list.length)]
  const bpm = Math.round(70 * (150 / 70) ** random())
  const mode = random() < 0.5 ? 'major' : 'minor'
  const root = Math.floor(random() * 12)
  const beatsPerBar = random() < 0.15 ? 3 : 4
  const programs = [pick(harmonyPrograms), pick(bassPrograms), pick(melodyPrograms)]
  const cents = Math.round(40 * (random() - 0.5))
  const sevenShare = pick([0, 0.3, 0.6])
  const form = pick(forms)
  const rest = [...progressions[mode]]
  const parts = Object.fromEntries(
    [...new Set(form)].map((label) => [
      label,
      {
        bars: barsOf(rest.splice(Math.floor(random() * rest.length), 1)[0]),
        drums: beatsPerBar === 3 ? [] : drumPatterns[pick(['rock', 'house', 'halftime', 'sixteenths', 'none'])],
        strums: random() < 0.5,
        tune: random() < 0.7 ? 0.4 + 0.5 * random() : 0,
        octave: pick([4, 4, 5]),
      },
    ]),
  )
  const notes = []
  const note = (channel, at, length, key, velocity) =>
    notes.push({ channel, at, length, key, velocity: Math.round(velocity + 12 * (random() - 0.5)) })
  const [chords, sections] = [[], []]
  const beat = 60 / bpm
  let [bar, step] = [0, 4]
  for (const label of form) {
    const length = label === '-' ? 4 : barsOfSection
    sections.push({ start: bar * beatsPerBar * beat, end: (bar + length) * beatsPerBar * beat, label })
    for (let i = 0; i < length; i++, bar++) playBar(parts[label], i, label)
  }
  const seconds = bar * beatsPerBar * beat
  return { bpm, seconds, chords: joined(chords), sections, midi: midiFile(bpm, notes, programs, cents) }

  /** The chords of a section's bars: each a list of `[beats, tones above the tonic, root first, name]`. */
  function barsOf(progression) {
    return Array.from({ length: 4 }, (_, i) => {
      const isSplit = beatsPerBar === 4 && random() < 0.2
      const degrees = [Number(progression[i]), ...(isSplit ? [pick([0, 3, 4, 5])] : [])]
      return degrees.map((degree) => ({ beats: beatsPerBar / degrees.length, ...chordOn(degree) }))
    })
  }

  function chordOn(degree) {
    const scale = scales[mode]
    const tone = (index) => scale[index % 7] + 12 * Math.floor(index / 7)
    let tones = [0, 2, 4, 6].map((third) => tone(degree + third) - tone(degree))
    // The dominant of a minor key often has a major third.
    if (mode === 'minor' && degree === 4 && random() < 0.5) tones = [0, 4, 7, 10]
    // The analysis does not name diminished chords.
    if (tones[2] !== 7) tones = [0, tones[1], 7, 10]
    const third = tones[1] === 4 ? 'major' : 'minor'
    const seventh = sevenths[third][tones.slice(1).join(',')]
    const isSeventh = seventh !== undefined && random() < sevenShare
    const low = (root + tone(degree)) % 12
    const name = names[low] + (isSeventh ? seventh : third === 'minor' ? 'm' : '')
    return { low, tones: isSeventh ? tones : tones.slice(0, 3), name, inversion: pick([0, 0, 1, 2]), degree }
  }

  function playBar(part, index, label) {
    const start = bar * beatsPerBar
    for (const [at, key] of part.drums) note(9, start + at, 0.2, key, key === closedHat ? 60 : 95)
    if (part.drums.length > 0 && index === 0) note(9, start, 1, crash, 80)
    let at = start
    for (const { beats, low, tones, name, inversion } of part.bars[index % 4]) {
      chords.push({ start: at * beat, end: (at + beats) * beat, name: label === '-' ? 'N' : name })
      if (label !== '-') playChord(part, at, beats, { low, tones, inversion })
      at += beats
    }
  }

  function playChord({ strums, tune, octave }, at, beats, { low, tones, inversion }) {
    const voices = tones.map((tone, i) => 12 * octave + low + tone + (i < inversion ? 12 : 0) - (low > 7 ? 12 : 0) + 12)
    for (let i = 0; i < beats; i++) {
      if (strums || i === 0)
        for (const key of voices) note(0, at + i, strums ? 0.9 : beats, key - 12, i === 0 ? 76 : 62)
      if (i === 0 || random() < 0.5) note(1, at + i, 0.8, 24 + low + (i > 0 && random() < 0.3 ? 7 : 0) + 12, 90)
      if (tune === 0) continue
      step = i === 0 ? pick([0, 2, 4]) : step + pick([-2, -1, 1, 2])
      const inScale = ((step % 7) + 7) % 7
      const key = i === 0 ? low + pick(tones) : root + scales[mode][inScale] + 12 * Math.floor(step / 7)
      if (random() < tune) note(2, at + i, pick([0.5, 0.9]), 60 + key, 80)
    }
  }
}

function joined(chords) {
  const list = []
  for (const chord of chords) {
    const last = list.at(-1)
    if (last?.name === chord.name) last.end = chord.end
    else list.push({ ...chord })
  }
  return list
}
