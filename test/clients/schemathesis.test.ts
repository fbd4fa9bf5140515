import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { startService } from '../http/harness.js'

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const program = path('../../clients/python/.venv/bin/schemathesis')
/** `npm run test:daily` sends more examples, different ones each day, with each bound of each field. */
const examples = Number(process.env.STEMWORK_SCHEMATHESIS_EXAMPLES ?? 5)
const seed = process.env.STEMWORK_SCHEMATHESIS_SEED ?? '1'
const phases = examples > 5 ? 'examples,coverage,fuzzing' : 'examples,fuzzing'
/** Event streams that end only with their client. */
const endless = ['followJobs', 'followJob']

// Installed by `.ci/run`, which says how: test/clients/requirements.txt.
it.skipIf(!existsSync(program))(
  'no request that the OpenAPI document allows is refused, and no answer is one that it does not have (skipped ' +
    'without schemathesis)',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-schemathesis-'))
    const service = await startService({
      http: {
        manageKeys: true,
        resumableUploads: true,
        metrics: true,
        rateLimits: { create: false, status: false, other: false, link: false, wrongKeys: false },
      },
    })
    const options = {
      header: `Authorization: ${service.app.key}`,
      phases,
      'max-examples': String(examples),
      'request-timeout': '60',
      warnings: 'off',
      seed,
    }
    try {
      const { stdout } = await promisify(execFile)(
        program,
        [
          `--config-file=${path('schemathesis.toml')}`,
          'run',
          `${service.base}/openapi.json`,
          ...Object.entries(options).map(([name, value]) => `--${name}=${value}`),
          ...endless.map((operation) => `--exclude-operation-id=${operation}`),
          '--continue-on-failure',
          '--no-color',
        ],
        // It keeps its findings in its working folder.
        { cwd: folder, env: { ...process.env, SCHEMATHESIS_HOOKS: 'schemathesis_hooks', PYTHONPATH: path('.') } },
      ).catch((error: { stdout: string; stderr: string }) => {
        throw new Error(`${error.stdout}\n${error.stderr}`)
      })
      // It has called every route.
      expect(Number(/(\d+) generated/.exec(stdout)?.[1])).toBeGreaterThan(100)
    } finally {
      await service.close()
      await rm(folder, { recursive: true })
    }
  },
  examples * 20_000 + 200_000,
)
