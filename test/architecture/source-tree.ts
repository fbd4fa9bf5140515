import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Import {
  from: string
  /** Path inside `src` for a relative import, otherwise the package's name. */
  to: string
  typeOnly: boolean
  /** `import()`: loaded on demand. */
  lazy: boolean
}

/** Text of each file in `src`, by its path there. */
export function readSources(): Map<string, string> {
  const src = fileURLToPath(new URL('../../src', import.meta.url))
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file))
  return new Map(files.map((file) => [file.replaceAll('\\', '/'), readFileSync(join(src, file), 'utf8')]))
}

interface WrittenImport extends Pick<Import, 'typeOnly' | 'lazy'> {
  specifier: string
}

const pattern =
  /^\s*(?:import|export)\s+(type\s+)?[^'"]*?from\s+['"]([^'"]+)['"]|^\s*import\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm
/** Cached by text: trees differ in a file or two. */
const known = new Map<string, WrittenImport[]>()

function writtenImports(text: string): WrittenImport[] {
  let found = known.get(text)
  if (found === undefined) {
    found = Array.from(text.matchAll(pattern), ([, type, from, bare, dynamic]) => ({
      specifier: (from ?? bare ?? dynamic)!,
      typeOnly: type !== undefined,
      lazy: dynamic !== undefined,
    }))
    known.set(text, found)
  }
  return found
}

export class SourceTree {
  readonly files: ReadonlySet<string>
  readonly imports: readonly Import[]
  /** Imports of Node.js modules, which no other list contains. */
  readonly nodeImports: Import[] = []

  constructor(sources: ReadonlyMap<string, string>) {
    this.files = new Set(sources.keys())
    this.imports = [...sources].flatMap(([file, text]) => this.#importsOf(file, text))
  }

  #importsOf(file: string, text: string): Import[] {
    const found: Import[] = []
    for (const { specifier, typeOnly, lazy } of writtenImports(text)) {
      const list = specifier.startsWith('node:') ? this.nodeImports : found
      list.push({ from: file, to: this.#resolve(file, specifier), typeOnly, lazy })
    }
    return found
  }

  #resolve(file: string, specifier: string): string {
    if (!specifier.startsWith('.')) return specifier
    const path = posix.join(posix.dirname(file), specifier)
    return [path.replace(/\.js$/, '.ts'), path.replace(/\.js$/, '.tsx')].find((name) => this.files.has(name)) ?? path
  }

  /** Every file that static imports reach, including the entries; `withLazy`: also files loaded on demand. */
  reachableFrom(entries: string | readonly string[], withLazy = false): Set<string> {
    const reached = new Set<string>()
    const waiting = [entries].flat()
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      if (reached.has(file)) continue
      reached.add(file)
      for (const { from, to, typeOnly, lazy } of this.imports) {
        if (from === file && !typeOnly && (withLazy || !lazy)) waiting.push(to)
      }
    }
    return reached
  }

  /**
   * The folders as nodes, and the imports between them. A file beside folders is a node: `core/engine/engine.ts` uses
   * every folder of the engine, and all of them use `core/engine/errors.ts`.
   */
  folderGraph(): Map<string, Set<string>> {
    const withFolders = new Set(['.'])
    for (const file of this.files)
      for (let folder = dirname(dirname(file)); folder !== '.'; folder = dirname(folder)) withFolders.add(folder)
    const nodeOf = (file: string) => (withFolders.has(dirname(file)) ? file : dirname(file))
    const graph = new Map<string, Set<string>>()
    for (const { from, to } of this.imports) {
      if (!this.files.has(to) || nodeOf(from) === nodeOf(to)) continue
      graph.set(nodeOf(from), (graph.get(nodeOf(from)) ?? new Set()).add(nodeOf(to)))
    }
    return graph
  }

  /** The files as nodes; imports of types count. */
  fileGraph(): Map<string, Set<string>> {
    const graph = new Map<string, Set<string>>()
    for (const { from, to } of this.imports) {
      if (this.files.has(to)) graph.set(from, (graph.get(from) ?? new Set()).add(to))
    }
    return graph
  }
}

/** Cycles of a graph, each as the path that closes it. */
export function cycles(graph: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const found: string[][] = []
  const done = new Set<string>()
  const visit = (node: string, path: string[]): void => {
    const seenAt = path.indexOf(node)
    if (seenAt >= 0) return void found.push([...path.slice(seenAt), node])
    if (done.has(node)) return
    for (const next of graph.get(node) ?? []) visit(next, [...path, node])
    done.add(node)
  }
  for (const node of graph.keys()) visit(node, [])
  return found
}
