import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { readSources } from './source-tree.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const sources = readSources()

const architecture = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
/** The rows of the table in ARCHITECTURE.md. */
const budgets = [...architecture.matchAll(/^\| `src\/([\w/]+)` \| [^|]+ \| ([\d,]+) \|$/gm)].map(
  ([, folder = '', lines = '']) => ({ folder, lines: Number(lines.replaceAll(',', '')) }),
)

function linesIn(folder: string): number {
  const texts = [...sources].filter(([file]) => file.startsWith(`${folder}/`)).map(([, text]) => text)
  return texts.reduce((sum, text) => sum + text.split('\n').length - 1, 0)
}

describe('the budget of lines', () => {
  test('is stated for every folder of src and every folder of core', () => {
    const folders = (path: string) =>
      readdirSync(join(root, path), { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? entry.name : []))
    const rooms = folders('src').flatMap((name) =>
      name === 'core' ? folders('src/core').map((room) => `core/${room}`) : name,
    )
    expect(budgets.map(({ folder }) => folder).sort()).toEqual(rooms.sort())
  })

  test.each(budgets)('of src/$folder is kept: $lines', ({ folder, lines }) => {
    const found = linesIn(folder)
    expect(found).toBeGreaterThan(0)
    expect(found, `src/${folder} has ${found} lines`).toBeLessThanOrEqual(lines)
  })

  test('of the style sheets is kept', () => {
    const allowed = /style sheets of the pages have at most ([\d,]+) lines/.exec(architecture)?.[1]
    const folder = join(root, 'src/console')
    const sheets = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.css'))
    const lines = sheets.map((name) => readFileSync(join(folder, name), 'utf8').split('\n').length - 1)
    expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(Number(allowed?.replace(',', '')))
  })
})

test('no folder of src has more than 30 files, so that a file is found by its folder', () => {
  const counts = new Map<string, number>()
  for (const file of sources.keys()) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)
  expect([...counts].filter(([, count]) => count > 30)).toEqual([])
})
