/**
 * How a program reports its progress.
 *
 * - `ffmpeg`: the position that ffmpeg prints, with or without `-progress`, relative to the longest duration it names.
 * - `tqdm`: the percentage of the progress bar of many Python programs.
 * - A regular expression with one group, a percentage, or with two, a part and the whole.
 * - A function that returns a fraction, 0 to 1, or `undefined` for other lines.
 */
export type ProgramProgress = 'ffmpeg' | 'tqdm' | RegExp | ((line: string) => number | undefined)

/** Makes a function that finds the progress, 0 to 1, in a line of a program's output. */
export function progressReader(progress: ProgramProgress): (line: string) => number | undefined {
  if (typeof progress === 'function') return progress
  if (progress === 'ffmpeg') return ffmpegProgress()
  return matched(progress === 'tqdm' ? /(\d{1,3}(?:\.\d+)?)%\|/ : progress)
}

function matched(pattern: RegExp): (line: string) => number | undefined {
  return (line) => {
    // Without the flag g, `match` returns the groups.
    const [, part, whole] = line.match(new RegExp(pattern.source, pattern.flags.replace('g', ''))) ?? []
    if (part === undefined) return undefined
    return whole === undefined ? Number(part) / 100 : Number(part) / Number(whole)
  }
}

function ffmpegProgress(): (line: string) => number | undefined {
  let duration = 0
  return (line) => {
    const [, named] = /^\s*Duration: (\d+:\d+:\d+(?:\.\d+)?)/.exec(line) ?? []
    if (named !== undefined) duration = Math.max(duration, secondsOf(named))
    const [, position] = /(?:^out_time=|\btime=)(\d+:\d+:\d+(?:\.\d+)?)/.exec(line) ?? []
    return position === undefined || duration === 0 ? undefined : secondsOf(position) / duration
  }
}

function secondsOf(clock: string): number {
  return clock.split(':').reduce((seconds, part) => 60 * seconds + Number(part), 0)
}

/** Calls `onLine` for each line of a stream of text; a carriage return ends one, too, as in progress bars. */
export function lineReader(onLine: (line: string) => void): (text: string) => void {
  let rest = ''
  return (text) => {
    const [first = '', ...lines] = text.split(/[\r\n]+/)
    lines.unshift(rest + first)
    rest = (lines.pop() ?? '').slice(-longestLine)
    for (const line of lines) onLine(line)
  }
}

/** As long as a step's return value, because a detail is one line. Bounds binary output, which has no lines. */
const longestLine = 1_000_000
