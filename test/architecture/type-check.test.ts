import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Diagnostic } from 'typescript'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { projects, filesOf, check } = (await import(`${root}scripts/typecheck.mjs`)) as {
  projects: string[]
  filesOf(project: string): string[]
  check(project: string, planted: Record<string, string>): Diagnostic[]
}

const errorsOf = (project: string, path: string, text: string) =>
  check(project, { [path]: text }).map(({ code }) => code)

const unchecked = 'export const firstOf = (numbers: Float32Array): number => numbers[0]\n'
const mistyped = 'export const zero: number = "0"\n'
const undefinedForNumber = 2322

/** AssemblyScript, which its own compiler checks, and the type tests, which `test/package/types.test.ts` compiles against the build. */
const apart = ['src/core/separation/dsp/kernels/assembly', 'test/types'].map((folder) => join(folder, '/'))

test('every source file is checked, by one project', () => {
  const sources = ['src', 'test']
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((path) => join(folder, String(path))))
    .filter(
      (path) =>
        /\.tsx?$/.test(path) &&
        !path.startsWith(join('test', 'fixtures')) &&
        !apart.some((folder) => path.startsWith(folder)),
    )
  expect(
    projects
      .flatMap(filesOf)
      .filter((path) => sources.includes(path))
      .sort(),
  ).toEqual(sources.sort())
})

test('an index without a check is refused in src and in test', () => {
  expect(errorsOf('tsconfig.json', 'src/http/planted.ts', unchecked)).toEqual([undefinedForNumber])
  expect(errorsOf('tsconfig.json', 'test/http/planted.ts', unchecked)).toEqual([undefinedForNumber])
})

test('a numeric folder is exempt from that, and from nothing else', () => {
  const project = 'src/core/separation/tsconfig.json'
  expect(errorsOf(project, 'src/core/separation/dsp/planted.ts', unchecked)).toEqual([])
  expect(errorsOf(project, 'src/core/separation/dsp/planted.ts', mistyped)).toEqual([undefinedForNumber])
})
