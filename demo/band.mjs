import { bars, beatsPerBar, beatsPerMinute, chords, sections, tailSeconds } from './song.mjs'
import { crash, hat, kick, shaker, snare, tom } from './synthesis/drums.mjs'
import { bassNote, keysNote, padVoice, pluckedNote } from './synthesis/instruments.mjs'
import { randomNumbers } from './synthesis/random.mjs'
import { reverb } from './synthesis/reverb.mjs'
import { addSound, addTrack, decibels, newTrack } from './synthesis/track.mjs'

export const secondsPerBeat = 60 / beatsPerMinute
export const songSeconds = bars * beatsPerBar * secondsPerBeat + tailSeconds

const isIn = (section, bar) => bar >= sections[section][0] && bar < sections[section][1]
const timeOf = (bar, beat) => (bar * beatsPerBar + beat) * secondsPerBeat

/** Everything but the voice. */
export function playBand() {
  const random = randomNumbers(20260921)
  const dry = newTrack(songSeconds)
  const wet = newTrack(songSeconds)
  drums(dry, wet, random)
  bass(dry, random)
  pad(dry, wet, random)
  guitar(dry, wet, random)
  keys(dry, wet, random)
  addTrack(dry, reverb(wet, { decaySeconds: 1.6, dampingHz: 5500 }), 0.9)
  return dry
}

function drums(dry, wet, random) {
  const hit = (sound, bar, beat, { gain, pan = 0, send = 0 }) => {
    const at = {
      seconds: timeOf(bar, beat) + random.uniform(-0.004, 0.004),
      gain: gain * random.uniform(0.88, 1.06),
      pan,
    }
    addSound(dry, sound, at)
    if (send) addSound(wet, sound, { ...at, gain: at.gain * send })
  }
  for (let bar = 1; bar < bars - 1; bar++) {
    const full = isIn('chorus', bar)
    const beats = isIn('intro', bar) ? [] : [0, 1.5, 2, ...(full ? [2.75] : [])]
    for (const beat of beats) hit(kick(random), bar, beat, { gain: 0.5 })
    if (!isIn('intro', bar))
      for (const beat of [1, 3]) hit(snare(random), bar, beat, { gain: full ? 0.36 : 0.3, pan: -0.05, send: 0.3 })
    for (let eighth = 0; eighth < 8; eighth++) {
      const open = eighth === 7 && bar % 2 === 1
      hit(hat(random, { open }), bar, eighth / 2, { gain: eighth % 2 ? 0.045 : 0.075, pan: 0.3 })
    }
    if (full)
      for (let sixteenth = 0; sixteenth < 16; sixteenth++)
        hit(shaker(random), bar, sixteenth / 4, { gain: sixteenth % 4 === 2 ? 0.1 : 0.05, pan: -0.5 })
  }
  for (const [bar, beat, hz] of [
    [6, 2.5, 165],
    [6, 3, 130],
    [6, 3.5, 98],
    [1, 3, 165],
    [1, 3.5, 110],
  ])
    hit(tom(random, hz), bar, beat, { gain: 0.33, pan: (130 - hz) / 90, send: 0.35 })
  for (const bar of [2, 7, 11]) hit(crash(random), bar, 0, { gain: 0.2, pan: 0.35, send: 0.2 })
  hit(kick(random), 11, 0, { gain: 0.5 })
}

function bass(dry, random) {
  for (let bar = 1; bar < bars; bar++) {
    const { root } = chords[bar]
    const line =
      bar === bars - 1
        ? [[0, 3.9, 0]]
        : isIn('chorus', bar)
          ? [
              [0, 0.9, 0],
              [1, 0.45, 12],
              [1.5, 0.45, 0],
              [2, 0.9, 7],
              [3, 0.45, 0],
              [3.5, 0.45, 12],
            ]
          : [
              [0, 1.4, 0],
              [1.5, 0.45, 0],
              [2, 1.4, 0],
              [3.5, 0.45, 7],
            ]
    for (const [beat, length, interval] of line) {
      addSound(dry, bassNote(root + 12 * (root < 28) + interval, length * secondsPerBeat), {
        seconds: timeOf(bar, beat) + random.uniform(0, 0.006),
        gain: 0.2,
      })
    }
  }
}

function pad(dry, wet, random) {
  chords.forEach(({ notes }, bar) => {
    const gain = isIn('chorus', bar) ? 0.06 : 0.05
    for (const note of notes) {
      for (const pan of [-0.85, 0.85]) {
        const voice = padVoice(note, beatsPerBar * secondsPerBeat, random)
        addSound(dry, voice, { seconds: timeOf(bar, 0), gain, pan })
        addSound(wet, voice, { seconds: timeOf(bar, 0), gain: gain * 0.5, pan: -pan })
      }
    }
  })
}

function guitar(dry, wet, random) {
  const order = [0, 2, 1, 3, 2, 1, 3, 2]
  for (let bar = 0; bar < bars - 1; bar++) {
    const { notes } = chords[bar]
    order.forEach((index, eighth) => {
      const sound = pluckedNote(
        notes[index] + (eighth === 6 ? 12 : 0),
        0.9 * secondsPerBeat,
        random,
        eighth % 2 ? 0.3 : 0.6,
      )
      const at = {
        seconds: timeOf(bar, eighth / 2) + random.uniform(0, 0.008),
        gain: 0.3 * random.uniform(0.8, 1.05),
        pan: -0.55,
      }
      addSound(dry, sound, at)
      addSound(wet, sound, { ...at, gain: at.gain * 0.5 })
    })
  }
  chords[bars - 1].notes.forEach((note, index) =>
    addSound(dry, pluckedNote(note, 3.5, random, 0.6), {
      seconds: timeOf(bars - 1, 0) + 0.03 * index,
      gain: 0.3,
      pan: -0.5,
    }),
  )
}

function keys(dry, wet, random) {
  for (let bar = 2; bar < bars; bar++) {
    const beats = isIn('chorus', bar) ? [0, 1.5, 2.5] : [0, 2.5]
    for (const beat of beats) {
      for (const note of chords[bar].notes) {
        const sound = keysNote(note + (note < 60 ? 12 : 0), 1.1 * secondsPerBeat, random.uniform(0.7, 1))
        const at = { seconds: timeOf(bar, beat) + random.uniform(0, 0.012), gain: decibels(-27), pan: 0.5 }
        addSound(dry, sound, at)
        addSound(wet, sound, { ...at, gain: at.gain * 0.4 })
      }
    }
  }
}
