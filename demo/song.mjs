/** The notes and words of the demo song: twelve bars in A minor. Times are in beats. */
export const beatsPerMinute = 92
export const beatsPerBar = 4
export const bars = 12
export const tailSeconds = 1.8

export const sections = { intro: [0, 2], verse: [2, 6], break: [6, 7], chorus: [7, 11], end: [11, 12] }

/** Root of the bass and the notes of the chord, as MIDI numbers, for each bar. */
export const chords = [
  [33, [57, 60, 64, 67]],
  [29, [57, 60, 65, 67]],
  [33, [57, 60, 64, 67]],
  [29, [57, 60, 65, 69]],
  [36, [55, 60, 64, 67]],
  [31, [55, 59, 62, 67]],
  [28, [56, 59, 64, 68]],
  [29, [57, 60, 65, 69]],
  [31, [55, 59, 62, 67]],
  [33, [57, 60, 64, 69]],
  [36, [55, 60, 64, 67]],
  [29, [57, 60, 65, 72]],
].map(([root, notes]) => ({ root, notes }))

const line = (bar, entries) =>
  entries.map(([beat, length, note, sounds, accent]) => ({
    beat: bar * beatsPerBar + beat,
    length,
    note,
    sounds,
    accent,
  }))

/** "Moonlight on the water, slowly turning blue; I was only dreaming, dreaming here of you." */
const verse = [
  ...line(2, [
    [0, 0.75, 64, 'm u n'],
    [0.75, 0.75, 67, 'l a I t'],
    [1.5, 0.5, 69, 'O n'],
    [2, 0.5, 67, 'D @'],
    [2.5, 0.75, 64, 'w O'],
    [3.25, 0.65, 62, 't R'],
  ]),
  ...line(3, [
    [0, 1, 60, 's l o U'],
    [1, 0.5, 62, 'l i'],
    [1.5, 0.75, 65, 't R n'],
    [2.25, 0.5, 64, 'I N'],
    [2.75, 1.5, 57, 'b l u'],
  ]),
  ...line(4, [
    [0.5, 0.5, 64, 'a I'],
    [1, 0.5, 67, 'w O z'],
    [1.5, 0.75, 72, 'o U n'],
    [2.25, 0.5, 71, 'l i'],
    [2.75, 0.75, 67, 'd r i m'],
    [3.5, 0.5, 64, 'I N'],
  ]),
  ...line(5, [
    [0, 0.75, 67, 'd r i m'],
    [0.75, 0.25, 69, 'I N'],
    [1, 1, 71, 'h i R'],
    [2, 0.5, 69, 'A v'],
    [2.5, 1.4, 67, 'y u'],
  ]),
]

/** "Sing me home, over the sea; sing me home and stay with me, oh." */
const chorus = [
  ...line(7, [
    [0, 0.75, 69, 's I N', 1.15],
    [0.75, 0.5, 69, 'm i'],
    [1.25, 1.9, 72, 'h o U m', 1.2],
  ]),
  ...line(8, [
    [0, 0.5, 71, 'o U'],
    [0.5, 0.5, 69, 'v R'],
    [1, 0.5, 67, 'D @'],
    [1.5, 1.8, 71, 's i', 1.15],
  ]),
  ...line(9, [
    [0, 0.75, 69, 's I N', 1.15],
    [0.75, 0.5, 71, 'm i'],
    [1.25, 1.4, 72, 'h o U m', 1.2],
    [2.75, 0.5, 71, 'e n d'],
    [3.25, 0.75, 69, 's t e I'],
  ]),
  ...line(10, [
    [0, 0.5, 67, 'w I D'],
    [0.5, 1, 64, 'm i'],
    [1.75, 0.75, 67, 'o', 1.1],
    [2.5, 2.2, 72, 'o U', 1.1],
  ]),
]

export const melody = [...verse, ...chorus]
/** A third below the chorus, in the key. */
export const harmony = chorus.map((entry) => ({
  ...entry,
  note: { 64: 60, 67: 64, 69: 65, 71: 67, 72: 69 }[entry.note] ?? entry.note - 4,
}))
