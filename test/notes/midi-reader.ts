export interface MidiTrackRead {
  name: string
  /** Start and end in seconds. */
  notes: { start: number; end: number; pitch: number; velocity: number }[]
  bends: { at: number; value: number }[]
}

/** Reads a MIDI file with one tempo, independently of our writer. */
export function readMidi(file: Buffer): { tempo: number; tracks: MidiTrackRead[] } {
  if (file.toString('latin1', 0, 4) !== 'MThd') throw new Error('no MIDI file')
  const division = file.readUInt16BE(12)
  let tempo = 120
  const tracks: MidiTrackRead[] = []
  for (let at = 14; at < file.length;) {
    const end = at + 8 + file.readUInt32BE(at + 4)
    const read = readTrack(file.subarray(at + 8, end), (ticks) => (ticks * 60) / (tempo * division))
    if (read.tempo !== undefined) tempo = read.tempo
    if (read.name !== '') tracks.push(read)
    at = end
  }
  return { tempo, tracks }
}

function readTrack(bytes: Buffer, secondsOf: (ticks: number) => number): MidiTrackRead & { tempo?: number } {
  const track: MidiTrackRead & { tempo?: number } = { name: '', notes: [], bends: [] }
  const sounding = new Map<number, { start: number; velocity: number }>()
  let at = 0
  let ticks = 0
  const variable = () => {
    let value = 0
    for (;;) {
      const byte = bytes[at++]!
      value = (value << 7) | (byte & 0x7f)
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    ticks += variable()
    const status = bytes[at++]!
    if (status === 0xff) {
      const kind = bytes[at++]
      const length = variable()
      if (kind === 3) track.name = bytes.toString('utf8', at, at + length)
      if (kind === 0x51) track.tempo = 60_000_000 / bytes.readUIntBE(at, 3)
      at += length
      continue
    }
    const [one, two] = [bytes[at]!, bytes[at + 1]!]
    at += 2
    const seconds = secondsOf(ticks)
    if (status >> 4 === 0xe) track.bends.push({ at: seconds, value: one + (two << 7) - 8192 })
    else if (status >> 4 === 9) sounding.set(one, { start: seconds, velocity: two })
    else if (status >> 4 === 8) track.notes.push({ ...sounding.get(one)!, end: seconds, pitch: one })
    else throw new Error(`unexpected event ${status}`)
  }
  track.notes.sort((one, other) => one.start - other.start || one.pitch - other.pitch)
  return track
}
