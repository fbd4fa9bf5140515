import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lineTimes, lyricLines } from '../../../src/core/workflows/practice/line-times.js'
import { lrcFile, ultraStarFile } from '../../../src/core/workflows/practice/lyric-files.js'

const linesOf = (...texts: string[]) => lyricLines(texts.join('\n'))

describe('lines of a text', () => {
  test('are those that are sung: headings and empty lines begin verses', () => {
    expect(lyricLines('[Verse 1]\r\n One   tone \r\nand more\n\n* * *\nThe end')).toEqual([
      { text: 'One tone', beginsVerse: true },
      { text: 'and more', beginsVerse: false },
      { text: 'The end', beginsVerse: true },
    ])
  })
})

describe('times of lines', () => {
  test('are phrases, if there are as many', () => {
    const phrases = [
      { start: 1, end: 3 },
      { start: 4, end: 6.5 },
      { start: 12, end: 14 },
    ]
    expect(lineTimes(linesOf('Over the hills', 'and far away', 'we go'), phrases)).toEqual([
      { text: 'Over the hills', start: 1, end: 3 },
      { text: 'and far away', start: 4, end: 6.5 },
      { text: 'we go', start: 12, end: 14 },
    ])
  })

  test('divide one phrase by letters, and join phrases for a long line', () => {
    const divided = lineTimes(linesOf('abcdefgh', 'abcdefgh'), [{ start: 10, end: 20 }])
    expect(divided.map(({ start, end }) => [start, end])).toEqual([
      [10, 15],
      [15, 20],
    ])
    const phrases = [0, 2, 4, 10].map((start) => ({ start, end: start + 1.5 }))
    const joined = lineTimes(linesOf('a line of three phrases, each of them long', 'and a short one'), phrases)
    expect(joined.map(({ start, end }) => [start, end])).toEqual([
      [0, 5.5],
      [10, 11.5],
    ])
  })

  test('put the boundary of verses at the long pause', () => {
    const phrases = [0, 3, 8].map((start) => ({ start, end: start + 2 }))
    const [, second] = lineTimes(linesOf('one two three', '', 'four five six'), phrases)
    expect(second!.start).toBe(8)
    expect(lineTimes(linesOf('one'), [])).toEqual([])
  })

  test('are in order and begin and end with singing, whatever there is to divide', () => {
    const lengths = fc.array(fc.tuple(fc.double({ min: 0.15, max: 20, noNaN: true }), fc.integer({ min: 1, max: 9 })), {
      minLength: 1,
      maxLength: 30,
    })
    const texts = fc.array(fc.stringMatching(/^[a-z]{1,30}$/), { minLength: 1, maxLength: 40 })
    fc.assert(
      fc.property(lengths, texts, (stretches, given) => {
        let at = 0
        const phrases = stretches.map(([length, pause]) => {
          const start = at + pause
          at = start + length
          return { start, end: at }
        })
        const times = lineTimes(linesOf(...given), phrases)
        expect(times.map(({ text }) => text)).toEqual(given)
        const isVoiced = (time: number) => phrases.some(({ start, end }) => time >= start - 1e-6 && time <= end + 1e-6)
        let last = 0
        for (const { start, end } of times) {
          expect(start).toBeGreaterThanOrEqual(last - 1e-6)
          expect(end).toBeGreaterThan(start)
          expect(isVoiced(start) && isVoiced(end)).toBe(true)
          last = end
        }
      }),
      { numRuns: 100 },
    )
  })
})

test('files of lyrics count more than 59 minutes', () => {
  const lines = [{ text: 'One tone', start: 3725.5, end: 3727 }]
  const facts = { title: 'Long', seconds: 3730, audio: 'guide.wav' }
  expect(lrcFile(lines, facts)).toBe('[ti:Long]\n[length:62:10.00]\n[62:05.50]One tone\n[62:07.00]\n')
  expect(ultraStarFile(lines, facts, 100)).toBe(
    '#TITLE:Long\n#ARTIST:Unknown\n#MP3:guide.wav\n#BPM:400.00\n#GAP:3725500\nF 0 17 0 One\nF 17 23 0  tone\nE\n',
  )
})
