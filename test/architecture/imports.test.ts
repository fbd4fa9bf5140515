import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const src = fileURLToPath(new URL('../../src', import.meta.url))

interface Import {
  from: string
  /** Path inside `src` for a relative import, else the package's name. */
  to: string
  typeOnly: boolean
}

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file))
const imports: Import[] = files.flatMap((file) => importsOf(file))

/** Rooms of which a file may import others. The first rule that matches the importing file decides. */
const rules: { room: RegExp; may: RegExp[]; why: string }[] = [
  { room: /^core\//, may: [/^core\//], why: 'core never imports adapters, http or cli' },
  {
    room: /^adapters\//,
    may: [/^adapters\//, /^core\/(ports|job)\//, /^core\/errors/],
    why: 'adapters know only the ports, the job and the errors',
  },
  { room: /^client\//, may: [/^client\//], why: 'the client runs in browsers and depends on nothing' },
  {
    room: /^console\//,
    may: [/^console\//, /^client\//],
    why: 'the page uses the public interface by way of the client',
  },
  {
    room: /^http\//,
    may: [
      /^http\//,
      /^core\/(engine|errors|events|options)/,
      /^core\/(ports|job|workflow)\//,
      /^core\/fetch\/address-guard/,
      /^core\/upload\//,
    ],
    why: "http knows the engine's public types",
  },
  { room: /^(index|create-engine)\.ts$/, may: [/^(?!cli\/)/], why: 'nothing imports cli' },
  { room: /^cli\//, may: [/./], why: '' },
]

describe('the rooms of the house', () => {
  for (const { room, may, why } of rules.filter((rule) => rule.why)) {
    test(`${room.source}: ${why}`, () => {
      const wrong = imports.filter(
        ({ from, to }) => room.test(from) && to.endsWith('.ts') && !may.some((allowed) => allowed.test(to)),
      )
      expect(wrong).toEqual([])
    })
  }

  test('an adapter does not import another adapter', () => {
    const wrong = imports.filter(({ from, to }) => {
      const [own, other] = [from, to].map((path) => /^adapters\/([^/]+)\//.exec(path)?.[1])
      return own !== undefined && other !== undefined && own !== other
    })
    expect(wrong).toEqual([])
  })

  test('frameworks are never imported', () => {
    expect(imports.filter(({ to }) => /^(express|koa|fastify|hono|next)(\/|$)/.test(to))).toEqual([])
  })

  test('the container is known in one file', () => {
    const users = imports.filter(({ to }) => to === 'tsyringe' || to === 'reflect-metadata').map(({ from }) => from)
    expect([...new Set(users)]).toEqual(['create-engine.ts'])
  })

  test("what a host loads with import 'stemwork' reaches no native code and no decoder", () => {
    const reached = reachableFrom('index.ts')
    const heavy = imports.filter(
      ({ from, to, typeOnly }) =>
        !typeOnly &&
        reached.has(from) &&
        /^(onnxruntime-|audio-decode|@audio\/|@echogarden\/|libsql|@aws-sdk\/|pg$|bullmq|keyv)/.test(to),
    )
    expect(heavy).toEqual([])
  })

  test('no file imports another in a circle', () => {
    expect(circles()).toEqual([])
  })
})

function importsOf(file: string): Import[] {
  const text = readFileSync(join(src, file), 'utf8')
  const found: Import[] = []
  const pattern = /^\s*(import|export)\s+(type\s+)?[^'"]*?from\s+['"]([^'"]+)['"]|^\s*import\s+['"]([^'"]+)['"]/gm
  for (const [, , type, from, bare] of text.matchAll(pattern)) {
    const specifier = from ?? bare
    if (specifier.startsWith('node:')) continue
    const to = specifier.startsWith('.')
      ? relative(src, resolve(src, dirname(file), specifier)).replace(/\.js$/, '.ts')
      : specifier
    found.push({ from: file, to, typeOnly: type !== undefined })
  }
  return found
}

function reachableFrom(entry: string): Set<string> {
  const reached = new Set<string>()
  const waiting = [entry]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue
    reached.add(file)
    waiting.push(...imports.filter(({ from, typeOnly }) => from === file && !typeOnly).map(({ to }) => to))
  }
  return reached
}

function circles(): string[][] {
  const found: string[][] = []
  const done = new Set<string>()
  const visit = (file: string, path: string[]): void => {
    const seenAt = path.indexOf(file)
    if (seenAt >= 0) return void found.push([...path.slice(seenAt), file])
    if (done.has(file)) return
    for (const { to, typeOnly } of imports.filter(({ from }) => from === file)) {
      if (!typeOnly && to.endsWith('.ts')) visit(to, [...path, file])
    }
    done.add(file)
  }
  for (const file of files) visit(file, [])
  return found
}
