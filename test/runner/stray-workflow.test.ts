import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { silentLogger } from '../../src/core/engine/ports/logger.js'
import type { Runner } from '../../src/core/engine/ports/runner.js'
import { processRunner } from '../../src/core/engine/runner/process-runner.js'
import { temporaryFolder } from '../temporary-folder.js'

const module = new URL('fixtures/stray-workflow.mjs', import.meta.url).href
const directory = temporaryFolder()
let runner: Runner
beforeAll(async () => {
  const nodeArguments = ['--max-old-space-size=100']
  runner = processRunner({ resolve: () => expect.fail(), niceness: 0, nodeArguments, logger: silentLogger })
})
afterAll(async () => {
  await runner.close()
})

function run(deed: string, signal = new AbortController().signal) {
  const order = {
    jobId: 'job',
    workflow: 'test/stray',
    module,
    settings: null,
    params: { deed },
    inputs: {},
    directory,
  }
  return runner.run({ ...order, limits: { maxAudioSeconds: 1 } }, { signal, onProgress: () => {} })
}

describe('a workflow touches nothing but its own process', () => {
  test.each([
    ['throw', undefined],
    ['throw later', undefined],
    ['reject', undefined],
    ['exit', 'worker_lost'],
  ])('when it does "%s": its run fails, and the next one is not affected', async (deed, reason) => {
    await expect(run(deed)).rejects.toMatchObject({ code: 'INTERNAL_ERROR', reason })
    await expect(run('leak')).resolves.toMatchObject({ outputs: {} })
  })

  test('when it loops forever: the host continues, and the time limit ends it', async () => {
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    const limit = new AbortController()
    const running = run('loop', limit.signal)
    while (turns < 50) await new Promise((resolve) => setTimeout(resolve, 5))
    clearInterval(timer)
    limit.abort(new Error('too long'))
    await expect(running).rejects.toThrow('too long')
    expect(runner.status().busy).toBe(0)
  })

  test('when it leaks: its process ends between two runs, before that would cost one', async () => {
    const before = runner.status().restarts
    for (let runs = 0; runs < 25; runs++) await run('leak')
    expect(runner.status().restarts).toBeGreaterThan(before)
  })
})
