import { describe, expect, it } from 'vitest'
import { duration, ProgressLine } from '../../src/cli/terminal/progress-line.js'

function screen(isTTY: boolean) {
  const written: string[] = []
  let now = 0
  const stream = {
    isTTY,
    columns: 80,
    write: (text: string) => written.push(text) > 0,
  } as unknown as NodeJS.WriteStream
  const line = new ProgressLine(stream, () => now)
  return {
    written,
    show: (ms: number, fraction: number) => ((now = ms), line.show('Separating', fraction)),
    clear: () => line.clear(),
  }
}

describe('the progress line', () => {
  it('draws a bar in place on a terminal, with the time left', () => {
    const { written, show, clear } = screen(true)
    show(0, 0)
    show(10_000, 0.5)
    expect(written[1]).toMatch(/^\rSeparating \[#{15}-{15}\] {2}50% {2}10 s left$/)
    clear()
    expect(written[2]).toBe(`\r${' '.repeat(written[1]!.length - 1)}\r`)
  })

  it('redraws at most ten times a second, but always at the end', () => {
    const { written, show } = screen(true)
    for (let ms = 0; ms < 1000; ms += 10) show(ms, ms / 1000)
    expect(written).toHaveLength(10)
    show(1000, 1)
    expect(written).toHaveLength(11)
  })

  it('leaves nothing of a longer line behind', () => {
    const { written, show } = screen(true)
    show(10_000, 0.1)
    show(20_000, 1)
    expect(written[1]!.trimEnd().length).toBeLessThan(written[0]!.length)
    expect(written[1]).toHaveLength(written[0]!.length)
  })

  it('without a terminal, writes a plain line for every tenth of the way', () => {
    const { written, show } = screen(false)
    for (let percent = 0; percent <= 100; percent++) show(percent * 100, percent / 100)
    expect(written.map((text) => text.split(',')[0]!.trim())).toEqual(
      [10, 20, 30, 40, 50, 60, 70, 80, 90, 100].map((percent) => `Separating ${percent}%`),
    )
    expect(written.join('')).not.toContain('\r')
  })

  it.each([
    [0.2, '1 s'],
    [59, '59 s'],
    [125, '2 min 05 s'],
    [3725, '1 h 02 min'],
  ])('writes %d seconds as "%s"', (seconds, text) => {
    expect(duration(seconds)).toBe(text)
  })
})
