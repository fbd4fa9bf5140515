// Prints docs/api.txt: the public declarations of every subpath of the package, without comments, in an order
// independent of the layout of the files. A change of the public interface shows in the diff of that file.  Uses the
// compiler directly instead of @microsoft/api-extractor, which takes one entry point per configuration and run, and
// whose newest release parses declarations with TypeScript 3.1, which fails on our syntax.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist').replaceAll('\\', '/')
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const entries = Object.entries(exports)
  .filter(([, target]) => target.types)
  .map(([subpath, { types }]) => ({ subpath, file: join(root, types) }))
const missing = entries.filter(({ file }) => !existsSync(file)).map(({ file }) => file)
if (missing.length > 0) {
  console.error(`Not built: ${missing.join(', ')}. Run "npm run api", which builds first.`)
  process.exit(1)
}

const options = { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, noLib: true, types: [] }
/** Reads only this package's declarations: those of others are not shown and would take three quarters of the time. */
const host = {
  ...ts.createCompilerHost(options),
  resolveModuleNames: (names, from) =>
    names.map((name) =>
      name.startsWith('.') ? { resolvedFileName: join(dirname(from), name.replace(/\.js$/, '.d.ts')) } : undefined,
    ),
}
const program = ts.createProgram(
  entries.map(({ file }) => file),
  options,
  host,
)
const checker = program.getTypeChecker()
const printer = ts.createPrinter({ removeComments: true, newLine: ts.NewLineKind.LineFeed })

/** The subpath under which each declaration is shown. */
const shownBy = new Map()
const reached = new Set()
const oldNames = []
const lines = [
  'The public declarations of every subpath. Made by "npm run api"; a test fails when it is out of date.',
  ...entries.flatMap(({ subpath, file }) => ['', `== stemwork${subpath.slice(1)}`, ...exportsOf(subpath, file)]),
]
lines.push('', '== Old names, refused with the new ones', '', ...oldNames)
// The set grows during the loop: a reached symbol may reach more.
const hidden = []
for (const symbol of reached) if (!shownBy.has(symbol)) hidden.push(...declarationsOf(symbol))
lines.push('', '== Not exported, but part of what is', ...hidden.sort(byText).flatMap((text) => ['', text]))
process.stdout.write(`${lines.join('\n')}\n`)

function exportsOf(subpath, file) {
  const module = checker.getSymbolAtLocation(program.getSourceFile(file))
  return checker
    .getExportsOfModule(module)
    .sort((a, b) => byText(a.name, b.name))
    .flatMap((exported) => {
      const symbol = resolved(exported)
      const now = presentName(symbol)
      if (now !== undefined) {
        oldNames.push(`stemwork${subpath.slice(1)}: ${exported.name} is ${now}`)
        return []
      }
      const known = shownBy.get(symbol)
      if (known !== undefined) return ['', `${exported.name}: see stemwork${known.slice(1)}`]
      shownBy.set(symbol, subpath)
      const renamed = exported.name === symbol.name ? [] : ['', `${exported.name} is:`]
      return [...renamed, ...declarationsOf(symbol).flatMap((text) => ['', text])]
    })
}

/** The current name for an old one that `renamed` of src/core/engine/errors.ts refuses. */
function presentName(symbol) {
  const isType = (symbol.flags & ts.SymbolFlags.TypeAlias) !== 0
  const type = isType ? checker.getDeclaredTypeOfSymbol(symbol) : checker.getTypeOfSymbol(symbol)
  return type.isStringLiteral() && type.value.startsWith('Renamed: ') ? type.value.slice('Renamed: '.length) : undefined
}

function declarationsOf(symbol) {
  return (symbol.declarations ?? []).map((declaration) => {
    const node = statementOf(declaration)
    const shown = withoutPrivateMembers(node)
    collectReached(shown)
    return printer
      .printNode(ts.EmitHint.Unspecified, shown, node.getSourceFile())
      .replace(/^export (default )?/, '')
      .replace(/^declare /, '')
  })
}

function withoutPrivateMembers(node) {
  if (!ts.isClassDeclaration(node)) return node
  const { modifiers, name, typeParameters, heritageClauses } = node
  const members = node.members.filter(
    (member) =>
      !(member.name && ts.isPrivateIdentifier(member.name)) &&
      !(ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private),
  )
  return ts.factory.updateClassDeclaration(node, modifiers, name, typeParameters, heritageClauses, members)
}

/** Collects declarations of this package that `node` names: public in effect, whether a subpath exports them or not. */
function collectReached(node) {
  if (ts.isIdentifier(node)) {
    const symbol = checker.getSymbolAtLocation(node)
    if (symbol) reach(resolved(symbol))
  }
  ts.forEachChild(node, collectReached)
}

function reach(symbol) {
  const isOurs = (symbol.declarations ?? []).some((declaration) => {
    const statement = statementOf(declaration)
    return statement.getSourceFile().fileName.startsWith(dist) && statement.parent && ts.isSourceFile(statement.parent)
  })
  if (isOurs) reached.add(symbol)
}

/** The statement that contains the declaration: a constant is declared inside one, all else is a statement itself. */
function statementOf(declaration) {
  return ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration
}

function resolved(symbol) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

/** Compares by code unit, which is the same on every machine. */
function byText(a, b) {
  return a < b ? -1 : a > b ? 1 : 0
}
