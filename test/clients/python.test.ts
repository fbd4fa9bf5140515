import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { startService } from '../http/harness.js'

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const python = path('../../clients/python/.venv/bin/python')
const run = promisify(execFile)

// Installed by `node clients/python/generate.mjs`, which needs Python 3.11 with pip and the package index.
it.skipIf(!existsSync(python))(
  'the Python client, made from the document of a service, does what a program needs (skipped without its generator)',
  async () => {
    const service = await startService()
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-python-'))
    try {
      const document = join(folder, 'openapi.json')
      await writeFile(document, await (await fetch(`${service.base}/openapi.json`)).text())
      const out = join(folder, 'client')
      const args = [path('../../clients/python/generate.mjs'), `--document=${document}`, `--out=${out}`]
      const generated = spawnSync(process.execPath, args, { encoding: 'utf8' })
      expect([generated.status, generated.stderr]).toEqual([0, expect.not.stringMatching(/warning|unable/i)])
      const { stdout } = await run(python, [path('use_client.py'), service.base, service.app.key], {
        env: { ...process.env, PYTHONPATH: out, PYTHONDONTWRITEBYTECODE: '1' },
      })
      expect(JSON.parse(stdout)).toEqual({
        application: 'Test application',
        workflows: ['service/stems-vocals-accompaniment', 'service/held'],
        job: ['From Python', 'SUCCEEDED', 'service/stems-vocals-accompaniment', true],
        vocals: 'a song from Python',
        listed: true,
        deleted: true,
        problems: [
          [true, 'BAD_INPUT', true],
          [true, 'NOT_FOUND', true],
          [true, 'UNAUTHORIZED', true],
        ],
      })
    } finally {
      await service.close()
      await rm(folder, { recursive: true })
    }
  },
)
