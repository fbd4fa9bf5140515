// Pieces of music with known tempo, beats, bars and key, as Standard MIDI files. A seed determines every choice.

const ticksPerBeat = 480
export const names = ['C', 'C#', 'D', 'D#', 'E', 'F', 'F#', 'G', 'G#', 'A', 'A#', 'B']
export const scales = { major: [0, 2, 4, 5, 7, 9, 11], minor: [0, 2, 3, 5, 7, 8, 10] }
// Degrees of the scale, one chord a bar. No row equals another in the relative key: such a piece would have two right
// answers.
const progressions = {
  major: ['0453', '0534', '0344', '0304', '0140', '0514'],
  minor: ['0526', '0340', '0654', '0534', '0362', '0034'],
}
// Pieces for tuning alternate between two of these rows, start at any chord, and end on the tonic.
const variedProgressions = {
  major: ['0253', '1400', '0451', '3400', '5140', '0352', '3041', '0033', '0154'],
  minor: ['0360', '3400', '0566', '5600', '0433', '0230', '3064', '0044', '0534'],
}
// General MIDI programs.
export const harmonyPrograms = [0, 4, 16, 19, 24, 25, 27, 48, 50, 61, 81, 89]
export const melodyPrograms = [0, 11, 22, 25, 40, 56, 65, 68, 73, 80]
export const bassPrograms = [32, 33, 34, 36, 38, 43]
export const [kick, snare, closedHat, openHat, crash] = [36, 38, 42, 46, 49]

/** Patterns of one bar of four beats: [beat, key] of each hit. */
export const drumPatterns = {
  rock: [[0, kick], [2, kick], [2.5, kick], [1, snare], [3, snare], ...eighths(closedHat)],
  house: [
    [0, kick],
    [1, kick],
    [2, kick],
    [3, kick],
    [1, snare],
    [3, snare],
    ...[0.5, 1.5, 2.5, 3.5].map((at) => [at, openHat]),
  ],
  halftime: [[0, kick], [1.5, kick], [2, snare], ...eighths(closedHat)],
  sixteenths: [
    [0, kick],
    [0.75, kick],
    [2.25, kick],
    [1, snare],
    [3, snare],
    ...eighths(closedHat),
    ...[0.25, 1.25, 2.25, 3.75].map((at) => [at, closedHat]),
  ],
  none: [],
}

function eighths(key) {
  return Array.from({ length: 8 }, (_, i) => [i / 2, key])
}

/**
 * Draws a piece. The same seed gives the same piece.
 *
 * @param options `varied`: draws pieces for tuning, which have two parts, start at any chord, end on the tonic, often
 * have a raised leading note in minor, and are out of tune by up to a third of a semitone
 */
export function piece(seed, { slowest = 60, fastest = 190, seconds = 40, varied = false } = {}) {
  const random = randomBy(seed)
  const pick = (list) => list[Math.floor(random() * list.length)]
  const bpm = Math.round(slowest * (fastest / slowest) ** random())
  const mode = random() < 0.5 ? 'major' : 'minor'
  const root = Math.floor(random() * 12)
  const beatsPerBar = random() < 0.2 ? 3 : 4
  const drums =
    beatsPerBar === 3 ? pick(['waltz', 'none']) : pick(['rock', 'rock', 'house', 'halftime', 'sixteenths', 'none'])
  const parts = (varied ? [0, 0] : [0]).map(() => pick((varied ? variedProgressions : progressions)[mode]))
  const bars = Math.max(8, Math.round((seconds * bpm) / 60 / beatsPerBar))
  const scale = scales[mode]
  const [harmony, melody, bass] = [pick(harmonyPrograms), pick(melodyPrograms), pick(bassPrograms)]
  const strums = random() < 0.5
  const raisesLeadingNote = varied && mode === 'minor' && random() < 0.7
  const cents = varied ? Math.round(66 * (random() - 0.5)) : 0
  const notes = []
  const note = (channel, at, length, key, velocity) =>
    notes.push({ channel, at, length, key, velocity: Math.round(velocity + 12 * (random() - 0.5)) })
  let [chord, step] = [0, 4]
  const pitch = (degree, octave) => {
    const inScale = ((degree % 7) + 7) % 7
    const raised = raisesLeadingNote && chord === 4 && inScale === 6 ? 1 : 0
    return 12 * octave + root + scale[inScale] + raised + 12 * Math.floor(degree / 7)
  }
  for (let bar = 0; bar < bars; bar++) {
    const part = parts[Math.floor(bar / 8) % parts.length]
    chord = varied && bar === bars - 1 ? 0 : Number(part[bar % part.length])
    const start = bar * beatsPerBar
    for (let beat = 0; beat < beatsPerBar; beat++) {
      const at = start + beat
      if (strums || beat === 0)
        for (const part of [0, 2, 4])
          note(0, at, strums ? 0.9 : beatsPerBar, pitch(chord + part, 4) + (root > 6 ? 0 : 12), beat === 0 ? 76 : 62)
      if (beat === 0 || random() < 0.5) note(1, at, 0.8, pitch(chord + (beat === 2 ? 4 : 0), 2), 90)
      if (random() < 0.4) note(1, at + 0.5, 0.4, pitch(chord, 2), 78)
      // The melody moves along the scale and returns to the chord on the first beat.
      step = beat === 0 ? chord + pick([0, 2, 4, 7]) : step + pick([-2, -1, -1, 0, 1, 1, 2])
      if (random() < 0.85) note(2, at, pick([0.5, 0.9]), pitch(step, 5), 84)
      if (random() < 0.4) note(2, at + 0.5, 0.45, pitch(step + pick([-1, 1]), 5), 74)
    }
    const hits =
      drums === 'waltz'
        ? [
            [0, kick],
            [1, closedHat],
            [2, closedHat],
            [1, snare],
          ]
        : drumPatterns[drums]
    for (const [at, key] of hits) note(9, start + at, 0.2, key, key === closedHat ? 60 : 95)
    if (hits.length > 0 && bar % 8 === 0) note(9, start, 1, crash, 80)
  }
  const beat = 60 / bpm
  return {
    bpm,
    key: `${names[root]} ${mode}`,
    beatsPerBar,
    drums,
    programs: { harmony, melody, bass },
    beats: Array.from({ length: bars * beatsPerBar }, (_, i) => i * beat),
    downbeats: Array.from({ length: bars }, (_, i) => i * beatsPerBar * beat),
    midi: midiFile(bpm, notes, [harmony, bass, melody], cents),
  }
}

/** Returns a generator of numbers from 0 to 1: the same numbers for the same seed. */
export function randomBy(seed) {
  let state = (seed * 2_654_435_761) >>> 0 || 1
  const random = () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
  for (let i = 0; i < 20; i++) random()
  return random
}

/** One track of a Standard MIDI file. */
export function midiFile(bpm, notes, programs, cents) {
  const events = notes.flatMap(({ channel, at, length, key, velocity }) => [
    {
      tick: Math.round(at * ticksPerBeat),
      order: 1,
      bytes: [0x90 | channel, key, Math.max(1, Math.min(127, velocity))],
    },
    { tick: Math.round((at + length) * ticksPerBeat), order: 0, bytes: [0x80 | channel, key, 0] },
  ])
  events.sort((one, other) => one.tick - other.tick || one.order - other.order)
  const tempo = Math.round(60_000_000 / bpm)
  const bytes = [0, 0xff, 0x51, 3, tempo >> 16, (tempo >> 8) & 255, tempo & 255]
  programs.forEach((program, channel) => bytes.push(0, 0xc0 | channel, program))
  // The pitch wheel's range is two semitones each way.
  const wheel = 8192 + Math.round((cents / 200) * 8192)
  if (cents !== 0) programs.forEach((_, channel) => bytes.push(0, 0xe0 | channel, wheel & 127, wheel >> 7))
  let now = 0
  for (const { tick, bytes: event } of events) {
    bytes.push(...variableLength(tick - now), ...event)
    now = tick
  }
  bytes.push(0, 0xff, 0x2f, 0)
  const header = Buffer.from([0x4d, 0x54, 0x68, 0x64, 0, 0, 0, 6, 0, 0, 0, 1, ticksPerBeat >> 8, ticksPerBeat & 255])
  const track = Buffer.alloc(8)
  track.write('MTrk')
  track.writeUInt32BE(bytes.length, 4)
  return Buffer.concat([header, track, Buffer.from(bytes)])
}

function variableLength(value) {
  const bytes = [value & 127]
  for (let rest = value >> 7; rest > 0; rest >>= 7) bytes.unshift((rest & 127) | 128)
  return bytes
}
