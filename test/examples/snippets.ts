import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

/** The pages that a reader meets. */
export const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

/** A fenced block of a page. */
export interface Snippet {
  /** Page and heading, and a number from the second block under a heading on: `README.md: Embed it 2`. */
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

/** The lines of a script that are run, and those that are not, with the reason. */
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
