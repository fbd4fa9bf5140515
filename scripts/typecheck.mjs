// The type check: every file by the options of the project that it belongs to, as an editor does it. `tsc -p` would also hold what
// a project imports to that project's options; tsconfig.json says why that is not wanted.
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Together they have every source file, each in one of them. */
export const projects = [
  'tsconfig.json',
  'src/console/tsconfig.json',
  'test/console/page/tsconfig.json',
  'src/core/audio/tsconfig.json',
  'test/audio/tsconfig.json',
  'src/core/separation/tsconfig.json',
  'test/separation/tsconfig.json',
]

/** The paths of a project's files, from the repository's root. */
export function filesOf(project) {
  return parsed(project).fileNames.map((file) => relative(root, file))
}

/** What is wrong in a project's files; or, by its options, in files that are given as `{ path: text }` and need not exist. */
export function check(project, planted) {
  const { options, fileNames, errors } = parsed(project)
  const texts = new Map(Object.entries(planted ?? {}).map(([path, text]) => [join(root, path), text]))
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile } = host
  host.fileExists = (file) => texts.has(file) || fileExists(file)
  host.readFile = (file) => texts.get(file) ?? readFile(file)
  const rootNames = planted ? [...texts.keys()] : fileNames
  const program = ts.createProgram({ rootNames, options, host })
  const ownFiles = rootNames.map((file) => program.getSourceFile(file))
  return ts.sortAndDeduplicateDiagnostics([
    ...errors,
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...ownFiles.flatMap((file) => ts.getPreEmitDiagnostics(program, file)),
  ])
}

function parsed(project) {
  const fail = (diagnostic) => {
    throw new Error(format([diagnostic]))
  }
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: fail }
  return ts.getParsedCommandLineOfConfigFile(join(root, project), { noEmit: true }, host)
}

function format(diagnostics) {
  const host = { getCanonicalFileName: (file) => file, getCurrentDirectory: () => root, getNewLine: () => '\n' }
  return ts.formatDiagnostics(diagnostics, host)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = projects.flatMap((project) => check(project))
  console.log(format(problems) || 'No type errors.')
  process.exitCode = problems.length > 0 ? 1 : 0
}
