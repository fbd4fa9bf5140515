import type { Note } from './note-events.js'

const ticksPerBeat = 480
const lowestBend = -8192
const highestBend = 8191
/** Usual range of the pitch wheel of MIDI instruments, in semitones to either side. */
const bendRange = 2

export interface MidiTrack {
  name: string
  notes: readonly Note[]
}

interface MidiEvent {
  tick: number
  /** Order among events of one tick, lowest first: a note ends before the next one begins. */
  order: number
  bytes: readonly number[]
}

/**
 * A Standard MIDI File of format 1 (RP-001): the tempo, then a track for each part, on its own channel. The pitch
 * wheel moves a whole channel, so a note's bends are written only while it sounds alone.
 *
 * @param bpm beats per minute, by which seconds become beats
 */
export function midiFile(tracks: readonly MidiTrack[], bpm: number): Buffer {
  const ticksOf = (seconds: number) => Math.round((seconds * bpm * ticksPerBeat) / 60)
  const microseconds = Math.round(60_000_000 / bpm)
  const tempo = [0xff, 0x51, 3, microseconds >> 16, (microseconds >> 8) & 0xff, microseconds & 0xff]
  const head = Buffer.alloc(6)
  head.writeUInt16BE(1)
  head.writeUInt16BE(1 + tracks.length, 2)
  head.writeUInt16BE(ticksPerBeat, 4)
  return Buffer.concat([
    chunk('MThd', head),
    chunk('MTrk', trackBytes([{ tick: 0, order: 0, bytes: tempo }])),
    ...tracks.map(({ name, notes }, index) => {
      const title = Buffer.from(name, 'utf8')
      const named = { tick: 0, order: 0, bytes: [0xff, 3, ...variableLength(title.length), ...title] }
      return chunk('MTrk', trackBytes([named, ...noteEvents(notes, channelOf(index), ticksOf)]))
    }),
  ])
}

/** Channel 10 is for drums. */
function channelOf(index: number): number {
  const channel = index % 15
  return channel < 9 ? channel : channel + 1
}

function noteEvents(notes: readonly Note[], channel: number, ticksOf: (seconds: number) => number): MidiEvent[] {
  const alone = soundingAlone(notes)
  return notes.flatMap((note, index) => {
    const { start, end, pitch, amplitude, bends } = note
    const velocity = Math.min(127, Math.max(1, Math.round(127 * amplitude)))
    const [from, to] = [ticksOf(start), Math.max(ticksOf(start) + 1, ticksOf(end))]
    const events: MidiEvent[] = [
      { tick: from, order: 3, bytes: [0x90 | channel, pitch, velocity] },
      { tick: to, order: 0, bytes: [0x80 | channel, pitch, 0] },
    ]
    if (!alone[index]) return events
    let last = 0
    for (const [step, bend] of bends.entries()) {
      const value = Math.min(highestBend, Math.max(lowestBend, Math.round((bend / bendRange) * -lowestBend)))
      if (value === last) continue
      last = value
      const tick = ticksOf(start + ((end - start) * step) / bends.length)
      events.push({ tick, order: 2, bytes: wheel(channel, value) })
    }
    if (last !== 0) events.push({ tick: to, order: 1, bytes: wheel(channel, 0) })
    return events
  })
}

function wheel(channel: number, value: number): number[] {
  const position = value - lowestBend
  return [0xe0 | channel, position & 0x7f, position >> 7]
}

/** @param notes sorted by start */
function soundingAlone(notes: readonly Note[]): boolean[] {
  let lastEnd = 0
  return notes.map(({ start, end }, index) => {
    const isAlone = start >= lastEnd && (notes[index + 1]?.start ?? Infinity) >= end
    lastEnd = Math.max(lastEnd, end)
    return isAlone
  })
}

function trackBytes(events: MidiEvent[]): Buffer {
  const bytes: number[] = []
  let now = 0
  for (const event of events.sort((one, other) => one.tick - other.tick || one.order - other.order)) {
    bytes.push(...variableLength(event.tick - now), ...event.bytes)
    now = event.tick
  }
  return Buffer.from([...bytes, 0, 0xff, 0x2f, 0])
}

/** Seven bits per byte, the highest first; all but the last byte have the eighth bit set. */
function variableLength(value: number): number[] {
  const bytes = [value & 0x7f]
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift(0x80 | (rest & 0x7f))
  return bytes
}

function chunk(type: string, data: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.write(type, 'latin1')
  head.writeUInt32BE(data.length, 4)
  return Buffer.concat([head, data])
}
