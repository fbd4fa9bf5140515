import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { buildDeclarations } from '../setup.js'

// `test/types` has one file for each subpath, compiled as a strict host would compile it, against the built
// declarations. A wrong use stands under `@ts-expect-error`, which is an error itself once the compiler takes that use.
const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = join(root, 'test/types')
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, unknown> }
const subpaths = Object.keys(exports).filter((subpath) => subpath !== './package.json')

buildDeclarations()
const config = ts.readConfigFile(join(folder, 'tsconfig.json'), ts.sys.readFile)
const { fileNames, options } = ts.parseJsonConfigFileContent(config.config, ts.sys, folder)
const program = ts.createProgram(fileNames, options)
const checker = program.getTypeChecker()

describe('the types of the package', () => {
  test('are as its users rely on', () => {
    const problems = ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
      const line = file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line + 1 : 0
      return `${relative(root, file?.fileName ?? '')}:${line} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
    })
    expect(problems).toEqual([])
  })

  for (const subpath of subpaths) {
    const specifier = `stemwork${subpath.slice(1)}`
    test(`of ${specifier} are used, each of its functions and constants, and at least once wrongly`, () => {
      const name = subpath === '.' ? 'index' : subpath.slice(2)
      const file = program.getSourceFile(join(folder, `${name}.ts`).replaceAll('\\', '/'))
      expect(file, `test/types/${name}.ts`).toBeDefined()
      const imported = file?.statements.find(
        (statement): statement is ts.ImportDeclaration =>
          ts.isImportDeclaration(statement) && (statement.moduleSpecifier as ts.StringLiteral).text === specifier,
      )
      const module = imported && checker.getSymbolAtLocation(imported.moduleSpecifier)
      const values = (module ? checker.getExportsOfModule(module) : [])
        .filter((symbol) => {
          const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
          return (target.flags & ts.SymbolFlags.Value) !== 0
        })
        .map((symbol) => symbol.name)
      const names = (imported?.importClause?.namedBindings as ts.NamedImports | undefined)?.elements ?? []
      expect(values.length).toBeGreaterThan(0)
      const used = names.map((element) => element.name.text)
      expect(values.filter((value) => !used.includes(value))).toEqual([])
      expect(file?.text).toContain('// @ts-expect-error: ')
    })
  }
})
