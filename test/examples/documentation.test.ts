import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { pages, root } from './snippets.js'

const generated = [
  ['docs/configuration.md', 'scripts/configuration.mjs', []],
  ['docs/security.md', 'scripts/configuration.mjs', ['security']],
  ['docs/http.md', 'scripts/http-reference.mjs', []],
  ['docs/api.txt', 'scripts/api-report.mjs', []],
] as const

describe('the documentation', () => {
  test.each(generated)('%s is what %s makes', (page, script, words) => {
    const { stdout, stderr } = spawnSync(process.execPath, [join(root, script), ...words], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(textOf(page), `run: node ${[script, ...words].join(' ')} > ${page}`).toBe(stdout)
  })

  test.each([...pages, 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'])(
    '%s links to files and headings that are there',
    (page) => {
      const missing: string[] = []
      for (const [, target, anchor] of textOf(page).matchAll(/\]\(([^)#\s]*)(?:#([^)]*))?\)/g)) {
        if (/^https?:/.test(target!)) continue
        const path = target === '' ? page : relative(root, resolve(root, dirname(page), target!))
        if (!existsSync(join(root, path)) || (anchor && !anchorsOf(path).includes(anchor)))
          missing.push(`${target}#${anchor ?? ''}`)
      }
      expect(missing).toEqual([])
    },
  )

  test('every page is linked from the README', () => {
    const readme = textOf('README.md')
    expect(pages.filter((page) => page !== 'README.md' && !readme.includes(`(${page})`))).toEqual([])
  })
})

function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

/** As GitHub names headings. */
function anchorsOf(page: string): string[] {
  const headings = textOf(page)
    .replace(/^```[\s\S]*?^```$/gm, '')
    .matchAll(/^#+ (.+)$/gm)
  return Array.from(headings, ([, text]) =>
    text!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
