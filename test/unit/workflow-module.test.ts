import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { workflowFromModule } from '../../src/core/engine/runner/workflow-module.js'

test('a module that only a loader of the host can read is refused, with what to do', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-module-'))
  // No Node.js version reads `.tsx` without a loader; from 22.18 on, it reads `.ts`.
  const path = join(folder, 'workflow.tsx')
  await writeFile(path, 'export default () => undefined')
  await expect(workflowFromModule(pathToFileURL(path).href, {})).rejects.toMatchObject({
    code: 'INTERNAL_ERROR',
    cause: {
      message: expect.stringContaining("child: { nodeArguments: ['--import', 'tsx'] }"),
      cause: { code: 'ERR_UNKNOWN_FILE_EXTENSION' },
    },
  })
  await rm(folder, { recursive: true })
})
