import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'
import { recommendedModel } from '../../src/core/models/best-model.js'
import { knownModels } from '../../src/core/models/known-models.js'
import { hasProgram } from '../servers/found-server.js'
import { stemwork } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const question = /scnet is better: 13 MB, MIT, about 10 dB instead of 4 .*\n?.*now on\? \[Y\/n\]/
const noSong = 'There is no file "no-song.wav"'

const folder = temporaryFolder()
let cache: string
let count = 0
beforeEach(() => {
  cache = join(folder, `cache-${++count}`)
})

/** An environment that sets nothing; the mirror is empty, so that no test downloads anything. */
function environment(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^(CI|STEMWORK_.*)$/.test(name))
  return { ...Object.fromEntries(own), STEMWORK_MODELS: cache, STEMWORK_MODEL_MIRROR: folder, ...more }
}

/** Runs a command at a pseudo-terminal, where the answer is typed as soon as the question appears. */
function atTerminal(answer: string, env: Record<string, string> = {}, args = ['separate', 'no-song.wav']) {
  const command = [process.execPath, main, ...args].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qec', command, '/dev/null'], { cwd: folder, env: environment(env) })
  let shown = ''
  child.stdout.on('data', (data: Buffer) => {
    if (!shown.includes('[Y/n]') && String(data).includes('[Y/n]')) child.stdin.write(answer)
    shown += data
  })
  return new Promise<{ status: number | null; shown: string }>((resolve) => {
    child.once('close', (status) => resolve({ status, shown: shown.replaceAll('\r', '') }))
  })
}

const answered = () => readFile(join(cache, 'recommended-model.json'), 'utf8').then(JSON.parse, () => undefined)

test('the recommended model is the best one that is small, not slow, and licensed for commercial use', () => {
  const { facts, speed, isCommercial, files } = recommendedModel()
  expect({ name: facts.name, licence: facts.licence, isCommercial }).toEqual({
    name: 'scnet',
    licence: 'MIT',
    isCommercial: true,
  })
  expect(speed).not.toBe('slow')
  expect(files.reduce((sum, { bytes = Infinity }) => sum + bytes, 0)).toBeLessThan(50_000_000)
  const better = knownModels.filter(({ quality = 0 }) => quality > (recommendedModel().quality ?? 0))
  for (const { isCommercial, speed } of better) expect(isCommercial !== true || speed === 'slow').toBe(true)
})

describe.skipIf(process.platform !== 'linux' || !hasProgram('script'))(
  'the first run at a terminal (needs script of util-linux)',
  () => {
    test('asks once whether to use the recommended model, and remembers a no', async () => {
      const first = await atTerminal('n\n')
      expect(first.shown).toMatch(question)
      expect(first.shown).toContain(noSong)
      expect(await answered()).toEqual({ use: false })
      const second = await atTerminal('n\n')
      expect(second.shown).not.toMatch(question)
    })

    test('continues with the bundled model if the download fails, and asks again the next time', async () => {
      const { shown } = await atTerminal('\n')
      expect(shown).toMatch(/13 MB[^]*scnet\.int8\.onnx[^]*Continuing with the bundled model\. The next run asks/)
      expect(shown).toContain(noSong)
      expect(await answered()).toBeUndefined()
    })

    test('ends with Ctrl-C', async () => {
      const { status, shown } = await atTerminal('\u0003')
      expect([status === 0, shown.includes(noSong), await answered()]).toEqual([false, false, undefined])
    })

    test('asks nothing in CI, with an answer in the environment or as an option, or with a model', async () => {
      const runs = await Promise.all([
        atTerminal('n\n', { CI: 'true' }),
        atTerminal('n\n', { STEMWORK_RECOMMENDED_MODEL: 'no' }),
        atTerminal('n\n', {}, ['separate', 'no-song.wav', '--recommended-model', 'no']),
        atTerminal('n\n', {}, ['separate', 'no-song.wav', '--model', 'embedded']),
      ])
      for (const { shown } of runs)
        expect([shown, question.test(shown)]).toEqual([expect.stringContaining(noSong), false])
    })

    test('is the same for serve', async () => {
      const { shown } = await atTerminal('n\n', {}, ['serve', '--port', '0', '--data', '/dev/null/x'])
      expect(shown).toMatch(question)
    })
  },
)

test('without a terminal, nothing is asked; answering yes by an option pulls the model or says why not', async () => {
  const args = ['separate', 'no-song.wav']
  Object.assign(process.env, { STEMWORK_MODELS: cache, STEMWORK_MODEL_MIRROR: folder })
  try {
    const [silent, yes, wrong, pull] = await Promise.all([
      stemwork(args),
      stemwork([...args, '--recommended-model', 'yes']),
      stemwork([...args, '--recommended-model', 'maybe']),
      stemwork(['models', 'pull', 'recommended']),
    ])
    expect(silent.stderr).toContain(noSong)
    expect(silent.stderr).not.toMatch(question)
    for (const { status, stderr } of [yes, pull])
      expect([status, stderr]).toEqual([
        1,
        expect.stringMatching(/^scnet: 12\.9 MB, licence: MIT\n[^]*scnet\.int8\.onnx/),
      ])
    expect(wrong).toMatchObject({ status: 2, stderr: expect.stringContaining('must be yes or no, not "maybe"') })
  } finally {
    delete process.env.STEMWORK_MODELS
    delete process.env.STEMWORK_MODEL_MIRROR
  }
})
