import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

/** The pages for readers. */
export const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

/** A fenced block of a page. */
export interface Snippet {
  /** Page and heading, with a number from the second block under a heading on: `README.md: Embed it 2`. */
  name: string
  language: string
  code: string
}

export function snippetsOf(page: string): Snippet[] {
  const found: Snippet[] = []
  const text = readFileSync(join(root, page), 'utf8')
  for (const { index, 1: language = '', 2: code = '' } of text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)) {
    const heading =
      [
        ...text
          .slice(0, index)
          .replace(/^```[\s\S]*?^```$/gm, '')
          .matchAll(/^#+ (.+)$/gm),
      ].at(-1)?.[1] ?? ''
    const title = `${page}: ${heading}`
    const before = found.filter(({ name }) => name === title || name.startsWith(`${title} `)).length
    found.push({ name: before === 0 ? title : `${title} ${before + 1}`, language, code })
  }
  return found
}

/** Steps that build on each other in one folder; `test/package/adapter.test.ts` follows them. */
const walks = /^docs\/adapters\.md: (Write an adapter|A blob store|A job store)( \d+)?$/

export function walkSnippets(): Snippet[] {
  return pages.flatMap(snippetsOf).filter(({ name }) => walks.test(name))
}

/** Snippets that run alone: `test/platforms` has its own tests for those of the page on platforms. */
export function runSnippets(): Snippet[] {
  return pages
    .filter((page) => page !== 'docs/platforms.md')
    .flatMap(snippetsOf)
    .filter(({ name }) => !walks.test(name))
}

export function pageOf({ name }: Snippet): string {
  return name.slice(0, name.indexOf(': '))
}

/** The first install of every page, as in docs/installation.md. */
const first = ['stemwork']

/**
 * The packages that the page tells its reader to install, by install command: commands that begin a line or are code.
 */
export function installsOf(page: string): string[][] {
  const text = readFileSync(join(root, page), 'utf8')
  const lists = Array.from(text.matchAll(/(?:^|`)npm install ([^`#\n]+)/gm), ([, words = '']) =>
    words.trim().split(/ +/),
  )
  const more = new Set(lists.flat().filter((word) => !word.startsWith('-') && !first.includes(word)))
  return more.size === 0 ? [first] : [first, [...more].sort()]
}

/** The names of these packages, without the versions that some pages give. */
export function packagesOf(page: string): string[] {
  return installsOf(page)
    .flat()
    .map((word) => word.replace(/(?<=.)@[^/]*$/, ''))
}

/** The packages that a program imports, without subpaths. */
export function importedPackages(code: string): string[] {
  const specifiers = Array.from(
    code.matchAll(/(?:^import |\bfrom |\bimport\()'([^'.][^']*)'/gm),
    ([, name = '']) => name,
  )
  const names = specifiers.map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name)
  return [...new Set(names.filter((name) => !name.startsWith('node:')))]
}

/** The lines of a script that are run, and the other lines with the reasons. */
export function splitScript(
  code: string,
  reasons: readonly (readonly [pattern: RegExp, reason: string])[],
): { script: string; left: { line: string; reason: string }[] } {
  const left: { line: string; reason: string }[] = []
  const kept = code.split('\n').filter((line) => {
    const reason = reasons.find(([pattern]) => pattern.test(line))?.[1]
    if (reason !== undefined) left.push({ line: line.replace(/\s+#.*/, '').trim(), reason })
    return reason === undefined
  })
  return { script: kept.join('\n'), left }
}
