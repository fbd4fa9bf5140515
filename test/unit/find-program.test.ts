import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findProgram } from '../../src/core/engine/program/find-program.js'

test('a program is where the host says, or else where the workflow does, or else on the PATH', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-find-'))
  try {
    const [here, elsewhere] = [join(folder, 'my-tool'), join(folder, 'other')]
    for (const path of [here, elsewhere]) {
      await writeFile(path, '')
      await chmod(path, 0o700)
    }
    const name = 'my-tool'
    expect(await findProgram({ name }, { PATH: folder })).toBe(here)
    expect(await findProgram({ name, path: elsewhere }, { PATH: folder })).toBe(elsewhere)
    const env = { PATH: folder, STEMWORK_PROGRAM_MY_TOOL: elsewhere }
    expect(await findProgram({ name, path: here }, env)).toBe(elsewhere)
    const refused = async (given: NodeJS.ProcessEnv, path?: string) =>
      await findProgram({ name, path }, given).then(
        () => 'found',
        (error: Error) => error.message,
      )
    const wrong = { ...env, STEMWORK_PROGRAM_MY_TOOL: 'other' }
    expect(await refused(wrong)).toContain('not where STEMWORK_PROGRAM_MY_TOOL says')
    expect(await refused({ PATH: '' })).toContain('set STEMWORK_PROGRAM_MY_TOOL to its path')
    expect(await refused({}, join(folder, 'none'))).toContain('not where the `path` of program() says')
  } finally {
    await rm(folder, { recursive: true })
  }
})
