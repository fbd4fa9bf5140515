import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { bundledQuality, recommendedModel } from '../../src/core/models/best-model.js'
import { buildDeclarations } from '../declarations.js'
import { packagesOf, pages, root, snippetsOf } from './snippets.js'

interface Manifest {
  name: string
  peerDependencies: Record<string, string>
  devDependencies: Record<string, string>
  dependencies: Record<string, string>
}

/** Target of the README's links: npm shows it without the files beside it. */
const repository = 'https://github.com/stemwork/stemwork/blob/main/'

const httpPages = readdirSync(join(root, 'docs/http')).map((name) => `docs/http/${name}`)

describe('the documentation', () => {
  test('has generated pages that are up to date', () => {
    buildDeclarations()
    const script = join(root, 'scripts/documents.mjs')
    const { stdout, stderr } = spawnSync(process.execPath, [script, 'check'], { encoding: 'utf8' })
    expect({ stdout, stderr }, 'run: npm run docs').toEqual({ stdout: '', stderr: '' })
  }, 300_000)

  test.each([...pages, ...httpPages, 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'llms.txt'])(
    '%s links to files and headings that exist',
    (page) => {
      const missing: string[] = []
      for (const [, target = '', anchor] of textOf(page).matchAll(/\]\(([^)#\s]*)(?:#([^)]*))?\)/g)) {
        const isOurs = target.startsWith(repository)
        if (!isOurs && /^https?:/.test(target)) continue
        const path = isOurs
          ? target.slice(repository.length)
          : target === ''
            ? page
            : relative(root, resolve(root, dirname(page), target))
        if (!existsSync(join(root, path)) || (anchor && !anchorsOf(path).includes(anchor)))
          missing.push(`${target}#${anchor ?? ''}`)
      }
      expect(missing).toEqual([])
    },
  )

  // One line each, so that a changed word is a changed line. Two pages consist of printed texts.
  test.each([...pages, ...httpPages, 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'])(
    '%s has a line for each paragraph and item of a list',
    (page) => {
      if (['docs/command-line.md', 'docs/licences.md'].includes(page)) return
      const lines = textOf(page)
        .replace(/^---\n[^]*?\n---\n/, '')
        .replace(/^ *```[^]*?^ *```$/gm, '')
        .split('\n')
      const isProse = (line = '') => line.trim() !== '' && !/^\s*([#|<>]|\[[^\]]+\]:|---)/.test(line)
      const isItem = (line = '') => /^\s*([-*+]|\d+[.)]) /.test(line)
      const wrapped = lines.filter((line, index) => isProse(line) && !isItem(line) && isProse(lines[index - 1]))
      expect(wrapped).toEqual([])
    },
  )

  // `test/platforms` installs the packages, which needs a registry; text mistaken for a command is found here.
  test.each(pages)('%s says to install packages that this repository is tested with', (page) => {
    const { name, peerDependencies, devDependencies, dependencies } = JSON.parse(textOf('package.json')) as Manifest
    const known = [name, ...Object.keys({ ...peerDependencies, ...devDependencies, ...dependencies })]
    // That page names bundlers, frameworks and types, and has its own tests.
    if (page !== 'docs/platforms.md') expect(packagesOf(page).filter((word) => !known.includes(word))).toEqual([])
  })

  test('the HTTP reference has a page for each resource, and the way from each to all others', () => {
    expect(httpPages.length).toBeGreaterThan(5)
    for (const page of httpPages) {
      const links = httpPages.filter((other) => other !== page).map((other) => `(${other.slice('docs/http/'.length)})`)
      const [, , , , way = ''] = textOf(page).split('\n')
      expect(links.filter((link) => !way.includes(link))).toEqual([])
      expect(textOf('docs/http.md')).toContain(`(${page.slice('docs/'.length)})`)
    }
  })

  test.each(['README.md', 'llms.txt'])('every page is linked from %s', (list) => {
    const text = textOf(list).replaceAll(repository, '')
    expect(pages.filter((page) => page !== 'README.md' && !text.includes(`(${page})`))).toEqual([])
  })

  test.each([...pages, ...httpPages].filter((page) => page.startsWith('docs/')))(
    '%s says first whom it is for',
    (page) => {
      const [, , first = ''] = readFileSync(join(root, page), 'utf8').split('\n')
      expect(first).toMatch(/^For [^:]+: .+\.$/)
    },
  )

  test.each([
    ['docs/concepts.md', 'The parts'],
    ['docs/concepts.md', "A job's life"],
    ['docs/concepts.md', 'What runs next'],
    ['docs/embedding.md', 'Embedding'],
    ['docs/deployment.md', 'Deployment'],
    ['docs/deployment.md', 'When a machine fails'],
    ['docs/scaling.md', 'What to scale by'],
  ])('%s: %s has a diagram', (page, heading) => {
    const diagrams = snippetsOf(page).filter(({ language }) => language === 'mermaid')
    expect(diagrams.map(({ name }) => name)).toContain(`${page}: ${heading}`)
  })

  // test/console/recording.test.ts makes these pictures.
  test.each([
    ['docs/console.md', 'console.png'],
    ['docs/operating.md', 'operator.png'],
  ])('%s shows its page', (page, picture) => {
    // Loaded from GitHub, because pictures are not in the tarball.
    const own = 'https://raw\\.githubusercontent\\.com/stemwork/stemwork/main/docs/'
    expect(textOf(page)).toMatch(new RegExp(`^!\\[[^\\]]+\\]\\(${own}${picture}\\)$`, 'm'))
  })

  test('the README is short, and shows a picture that moves, sounds and figures before it explains', () => {
    const text = textOf('README.md')
    expect(text.split('\n').length).toBeLessThanOrEqual(120)
    const [first = ''] = text.split('\n## ')
    const own = 'https://(?:raw\\.githubusercontent\\.com|github\\.com)/stemwork/stemwork/(?:blob/)?main/'
    const shown = Array.from(
      first.matchAll(new RegExp(`\\(${own}(docs/[\\w-]+\\.(?:mp3|webp))\\)`, 'g')),
      ([, path = '']) => path,
    )
    expect(text.match(/\]\((?!https:)[^)]*\)/g), 'links that npm would not find').toBeNull()
    expect(shown).toEqual(['docs/song.mp3', 'docs/song-without-voice.mp3', 'docs/demo.webp'])
    const sizes = shown.map((path) => statSync(join(root, path)).size)
    for (const bytes of sizes) expect(bytes).toBeLessThan(400_000)
    // Each frame of an animated WebP is a chunk with this name.
    const picture = readFileSync(join(root, 'docs/demo.webp')).toString('latin1')
    expect(picture.split('ANMF').length - 1).toBeGreaterThan(15)
    const figures = first.split('\n').filter((line) => line.startsWith('| ') && line.includes('`'))
    expect(figures).toHaveLength(3)
  })

  test('the README says the model sizes and scores that the registry has', () => {
    const { files, score = '' } = recommendedModel()
    const megabytes = files.reduce((sum, { bytes = 0 }) => sum + bytes, 0) / 1e6
    const text = textOf('README.md')
    expect(text).toContain(`${/^[\d.]+ dB/.exec(score)?.[0]} with the recommended one (${megabytes.toFixed(1)} MB`)
    expect(text).toContain(`${bundledQuality} dB with the bundled model`)
    expect(textOf('docs/quality.md')).toContain(`| ${bundledQuality} / `)
  })
})

function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

/** The anchors of the page's headings, as GitHub generates them. */
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
