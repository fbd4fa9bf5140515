import { join } from 'node:path'
import ts from 'typescript'
import { expect } from 'vitest'

/** What a compiler says of programs, as an editor would show it with checked JavaScript. */
export function typeProblems(folder: string, files: readonly string[]): string[] {
  const { errors, options } = ts.convertCompilerOptionsFromJson(
    {
      strict: true,
      allowJs: true,
      checkJs: true,
      noEmit: true,
      skipLibCheck: true,
      target: 'es2022',
      module: 'nodenext',
      lib: ['es2023'],
      types: ['node'],
      typeRoots: [join(folder, 'node_modules/@types')],
    },
    folder,
  )
  expect(errors).toEqual([])
  return ts.getPreEmitDiagnostics(ts.createProgram(files, options)).map(({ file, start, messageText }) => {
    const line = file && start !== undefined ? file.text.slice(0, start).split('\n').length : 0
    return `${file?.fileName.slice(folder.length + 1)}:${line} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}
