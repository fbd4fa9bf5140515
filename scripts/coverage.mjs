import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'

const build = join(import.meta.dirname, '../build')

/**
 * The share of the build's lines that ran, as one line of text, from the files that V8 wrote into `folder`
 * (`NODE_V8_COVERAGE`). The build has one file for each file of `src`.
 */
export function coverageOf(folder) {
  const reports = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')).result)
  const rooms = { all: { lines: 0, covered: 0 } }
  for (const path of builtFiles()) {
    const text = readFileSync(path, 'utf8')
    const { href } = pathToFileURL(path)
    const covered = coveredLines(
      text,
      reports.flatMap((scripts) => scripts.filter(({ url }) => url === href)),
    )
    const [top, second] = relative(build, path).split(sep)
    const room = (rooms[top === 'core' ? `core/${second}` : top] ??= { lines: 0, covered: 0 })
    text.split('\n').forEach((line, number) => {
      if (/^\s*($|\/\/|\/?\*)/.test(line)) return
      for (const sum of [room, rooms.all]) {
        sum.lines++
        if (covered[number]) sum.covered++
      }
    })
  }
  const { all, ...parts } = rooms
  const percent = ({ lines, covered }) => `${((100 * covered) / lines).toFixed(1)} %`
  const shown = Object.entries(parts).filter(([name, { covered }]) => covered > 0 && !name.endsWith('.js'))
  return `${percent(all)} of all lines (${shown.map(([name, part]) => `${name} ${percent(part)}`).join(', ')})`
}

function builtFiles() {
  return readdirSync(build, { recursive: true })
    .filter((name) => name.endsWith('.js'))
    .map((name) => join(build, name))
}

/** Whether each line begins in code that ran, in any of the scripts. */
function coveredLines(text, scripts) {
  const starts = []
  for (let at = 0; at !== 0 || starts.length === 0; at = text.indexOf('\n', at) + 1)
    starts.push(at + text.slice(at).search(/\S|$/))
  const covered = starts.map(() => false)
  for (const { functions } of scripts) {
    const counts = starts.map(() => 0)
    // Outer ranges come before the ranges within them.
    for (const { startOffset, endOffset, count } of functions.flatMap(({ ranges }) => ranges))
      starts.forEach((start, number) => {
        if (start >= startOffset && start < endOffset) counts[number] = count
      })
    counts.forEach((count, number) => (covered[number] ||= count > 0))
  }
  return covered
}
