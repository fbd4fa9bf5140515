import { describe, expect, it } from 'vitest'
import { BatchProgress } from '../../src/cli/files/batch-progress.js'

function screen(isTTY: boolean) {
  const written: string[] = []
  let now = 0
  const stream = {
    isTTY,
    columns: 60,
    write: (text: string) => written.push(text) > 0,
  } as unknown as NodeJS.WriteStream
  const progress = new BatchProgress(stream, () => now)
  progress.add([{ bytes: 100 }, { bytes: 300 }])
  return { written, progress, at: (ms: number) => void (now = ms) }
}

describe('progress of many songs', () => {
  it('draws a bar for each running song and one for all, over the previous ones', () => {
    const { written, progress, at } = screen(true)
    progress.begin('a.wav', 100)
    at(1000)
    progress.begin('b.wav', 300)
    at(2000)
    progress.show('b.wav', 0.5)
    expect(written.at(-2)).toBe('\u001B[3A\u001B[J')
    expect(written.at(-1)!.split('\n')).toEqual([
      '[--------------------]   0%  [1/2] a.wav',
      '[##########----------]  50%  [2/2] b.wav',
      '[########------------]  37%  all: 0 of 2 songs, 37%, 3 s le',
      '',
    ])
    progress.end('a.wav', 'done')
    progress.end('b.wav', 'done')
    expect(written.at(-1)).toBe('')
  })

  it('without a terminal, writes a line for each quarter of a song, with the overall share', () => {
    const { written, progress } = screen(false)
    progress.begin('a.wav', 100)
    for (let percent = 0; percent <= 100; percent++) progress.show('a.wav', percent / 100)
    progress.end('a.wav', 'done in 2 s')
    expect(written).toEqual([
      '[1/2] a.wav: 25% (0 of 2 songs, 6%)\n',
      '[1/2] a.wav: 50% (0 of 2 songs, 12%)\n',
      '[1/2] a.wav: 75% (0 of 2 songs, 18%)\n',
      '[1/2] a.wav: done in 2 s (1 of 2 songs, 25%)\n',
    ])
  })
})
