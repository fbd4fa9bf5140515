import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const width = 120

/** Tables of numbers, which the formatter leaves unchanged, and files that are not text. */
const exempt = [
  'src/core/media/encode/mp3/huffman-codes.ts',
  'src/core/media/encode/mp3/hybrid-filter.ts',
  'src/console/public/',
  'test/fixtures/audio/',
]

/** A regular expression or an address, which cannot be continued on the next line. */
const unbreakable = /^\s*(?:\/.*\/[a-z]*,?|['"`]https?:\/\/\S+)$/

/** A line as it is printed on a page: templates of generated pages escape the backticks of Markdown. */
const printed = (line: string) => line.replaceAll('\\`', '`')

/** The lines of `text`, numbered from 1, that are too wide. */
function wideLines(text: string): number[] {
  return text
    .split('\n')
    .flatMap((line, index) => (printed(line).length > width && !unbreakable.test(line) ? [index + 1] : []))
}

test(`no line of the code is wider than ${width} characters, comments and strings included`, () => {
  const folders = ['src', 'test', 'scripts', 'benchmarks', 'examples']
  const listed = execFileSync('git', ['ls-files', '--', ...folders], { cwd: root, encoding: 'utf8' }).split('\n')
  const files = listed.filter(
    (file) => /\.([cm]?[jt]sx?|css|html)$/.test(file) && !exempt.some((e) => file.startsWith(e)),
  )
  const wide = files.flatMap((file) =>
    wideLines(readFileSync(join(root, file), 'utf8')).map((line) => `${file}:${line}`),
  )
  expect(files.length).toBeGreaterThan(1000)
  expect(wide).toEqual([])
})

test('a wide line is found in a comment, a string and the middle of a file, but not an address', () => {
  const long = 'word '.repeat(30)
  expect(wideLines(`// ${long}\n\nsay('${long}')\n  'https://example.com/${'x'.repeat(120)}',\n`)).toEqual([1, 3])
})
