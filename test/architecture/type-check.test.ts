import { readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Files of `npm run typecheck`: all equally strict, pages with browser types, hosts' pages without Node.js types. */
const projects = ['tsconfig.json', 'tsconfig.console.json', 'tsconfig.browser.json'].map((project) => {
  const fail = ({ messageText }: ts.Diagnostic) => {
    throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'))
  }
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: fail }
  return ts.getParsedCommandLineOfConfigFile(join(root, project), {}, host)!
})

/**
 * Folders checked elsewhere: AssemblyScript by its own compiler, type tests by `test/package/types.test.ts` against the
 * build; and packages.
 */
const apart = ['src/core/media/dsp/kernels/assembly', 'test/types', 'test/fixtures', 'test/clients/node_modules'].map(
  (folder) => join(folder, '/'),
)

test('every source file is checked, by one project', () => {
  const sources = ['src', 'test']
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((path) => join(folder, String(path))))
    .filter((path) => /\.tsx?$/.test(path) && !apart.some((folder) => path.startsWith(folder)))
  const checked = projects.flatMap(({ fileNames }) => fileNames.map((file) => relative(root, file)))
  expect(checked.filter((path) => sources.includes(path)).sort()).toEqual(sources.sort())
})

test('all files are checked equally strictly: an unchecked index is an error everywhere', () => {
  for (const { options } of projects) {
    expect(options).toMatchObject({ strict: true, noUncheckedIndexedAccess: true, noEmit: true })
  }
})
