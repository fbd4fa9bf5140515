import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { program, type ProgramOptions } from '../../src/core/engine/program/program.js'
import { defineWorkflow, type Stage, type StageContext } from '../../src/core/engine/workflow/workflow.js'
import { testEngine } from '../engine/harness.js'
import { hasProgram, runProgram as output } from '../media/programs.js'
import { rejection } from './run-order.js'
import { folderOfEachTest } from '../temporary-folder.js'

const directory = folderOfEachTest()

/** The part of a stage's context that programs use. */
function contextOf(changes: Partial<StageContext> = {}): StageContext & { seen: number[] } {
  const seen: number[] = []
  return {
    jobId: 'job',
    params: {},
    inputs: {},
    outputs: [],
    directory,
    signal: new AbortController().signal,
    progress: (fraction: number) => void seen.push(fraction),
    seen,
    ...changes,
  } as StageContext & { seen: number[] }
}

const node = (code: string, options: ProgramOptions = {}) =>
  program('node', { path: process.execPath, args: ['-e', code], ...options })

/** A program that starts another one and prints both ids; both run for ever. */
const twoPrograms = `
  const { spawn } = require('node:child_process')
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
  require('node:fs').writeFileSync('ids.part', process.pid + ' ' + other.pid)
  require('node:fs').renameSync('ids.part', 'ids')
  setInterval(() => {}, 1000)`

async function startedIds(): Promise<number[]> {
  for (;;) {
    const text = await readFile(join(directory, 'ids'), 'utf8').catch(() => undefined)
    if (text !== undefined) return text.split(' ').map(Number)
    await delay(20)
  }
}

/** Resolves when none of the processes exists any more. */
async function gone(ids: readonly number[]): Promise<void> {
  for (const id of ids) while (await isAlive(id)) await delay(20)
}

/** A killed process remains in the list as a zombie where process 1 does not reap it. */
async function isAlive(id: number): Promise<boolean> {
  const stat = await readFile(`/proc/${id}/stat`, 'utf8').catch(() => undefined)
  if (stat !== undefined) return !/\) [ZX] /.test(stat)
  try {
    return process.platform !== 'linux' && process.kill(id, 0)
  } catch {
    return false
  }
}

describe('a program', () => {
  test('runs in the folder of the run without a shell, and sees nothing of the environment of the host', async () => {
    process.env.SECRET_OF_THE_HOST = 'secret'
    try {
      const code = 'console.log(JSON.stringify({ env: process.env, cwd: process.cwd(), args: process.argv.slice(1) }))'
      const show = node(code, { env: { EXTRA: 'given' } })
      const { stdout } = await show.run(contextOf(), ['-e', code, '$HOME; *', '"'])
      const seen = JSON.parse(stdout) as { env: Record<string, string>; cwd: string; args: string[] }
      expect(seen.args).toEqual(['$HOME; *', '"'])
      expect(seen.cwd).toContain(directory)
      const { EXTRA, HOME, PATH, ...rest } = seen.env
      expect({ EXTRA, HOME, PATH }).toEqual({ EXTRA: 'given', HOME: directory, PATH: process.env.PATH })
      const expected = ['LANG', 'TEMP', 'TMP', 'TMPDIR', 'SystemRoot', 'ComSpec', 'PATHEXT']
      expect(Object.keys(rest).filter((name) => !expected.includes(name))).toEqual([])
    } finally {
      delete process.env.SECRET_OF_THE_HOST
    }
  })

  test('fails as the fault of the file where badInput matches, and is not retried where permanent does', async () => {
    const failing = (code: string, options: ProgramOptions = {}) => rejection(node(code, options).run(contextOf()))
    const broken = "console.error('moov atom not found'); process.exit(1)"
    expect(await failing(broken, { badInput: /moov atom/ })).toMatchObject({
      code: 'BAD_INPUT',
      reason: 'decode_failed',
      retryable: false,
      cause: { message: expect.stringMatching(/node ended with exit code 1\. .*moov atom not found/) },
    })
    expect(await failing(broken)).toMatchObject({ code: 'INTERNAL_ERROR', retryable: true, details: { exitCode: 1 } })
    expect(await failing('process.exit(7)', { badInput: [/no/, 7] })).toMatchObject({ code: 'BAD_INPUT' })
    expect(await failing('process.kill(process.pid, 15)', { permanent: 'SIGTERM' })).toMatchObject({
      code: 'INTERNAL_ERROR',
      retryable: false,
      details: { signal: 'SIGTERM' },
    })
    const missing = program('no-such-program-of-stemwork', { args: [] })
    expect(await rejection(missing.run(contextOf()))).toMatchObject({
      code: 'MISSING_DEPENDENCY',
      message: expect.stringContaining('"no-such-program-of-stemwork" is not on the PATH'),
    })
  })

  test('reports its progress by lines that a parser reads, even those that end with a carriage return', async () => {
    const lines = (text: string) => `process.stderr.write(${JSON.stringify(text)})`
    for (const [progress, text] of [
      ['tqdm', '  0%|     | 0/4\r 25%|#    | 1/4\r100%|#####| 4/4\n'],
      ['ffmpeg', '  Duration: 00:00:08.00, start\nframe=1 time=00:00:02.00 bitrate\rout_time=00:00:08.000000\n'],
      [/frame (\d+) of (\d+)/g, 'frame 1 of 4\nframe 4 of 4\n'],
      [(line: string) => (line.startsWith('done ') ? Number(line.slice(5)) : undefined), 'done 0.25\nother\ndone 1\n'],
    ] as const) {
      const context = contextOf()
      await node(lines(text), { progress }).run(context)
      expect(context.seen.filter((fraction) => fraction > 0)).toEqual([0.25, 1])
    }
  })

  test('communicates by lines of JSON: progress, details, kept parts, a refusal; its order is in a file', async () => {
    const code = `
      const job = JSON.parse(require('node:fs').readFileSync(process.env.STEMWORK_JOB, 'utf8'))
      const say = (message) => console.log(JSON.stringify(message))
      require('node:fs').writeFileSync(job.outputs.text, job.params.word)
      require('node:fs').writeFileSync('part', '1')
      say({ progress: 0.5 }); say({ detail: 'language', value: 'en' }); say({ keep: 'part' })
      console.log('{ not json'); say({ badInput: 'It is silent. Send another.' }); process.exitCode = 1`
    const [details, kept]: [Record<string, unknown>, string[]] = [{}, []]
    const checkpoint = { parts: [], isOn: true, isDue: () => true, keep: async (path: string) => void kept.push(path) }
    const context = contextOf({
      params: { word: 'hello' },
      outputs: ['text'],
      outputPath: (name) => join(directory, name),
      checkpoint: { ...checkpoint, stop() {}, restart() {} },
      detail: (name, value) => void (details[name] = value),
    })
    const speaking = node(code, { protocol: 'stemwork' })
    expect(await rejection(speaking.run(context))).toMatchObject({
      code: 'BAD_INPUT',
      message: 'It is silent. Send another.',
    })
    expect({ details, kept, seen: context.seen }).toEqual({ details: { language: 'en' }, kept: ['part'], seen: [0.5] })
    expect(await readFile(join(directory, 'text'), 'utf8')).toBe('hello')
  })

  test('may end its last line by its own end, and report a bad file with any exit code', async () => {
    const code = `process.stdout.write('{"badInput":"It is silent."}')`
    const ended = rejection(node(code, { protocol: 'stemwork' }).run(contextOf()))
    expect(await ended).toMatchObject({ code: 'BAD_INPUT', message: 'It is silent.' })
    const context = contextOf()
    await node("process.stdout.write('50%')", { progress: /(\d+)%/ }).run(context)
    expect(context.seen).toEqual([0.5])
  })

  test('may give a detail of hundreds of thousands of characters', async () => {
    const details: unknown[] = []
    const context = contextOf({ detail: (_, value) => void details.push(value) })
    const code = "console.log(JSON.stringify({ detail: 'words', value: 'la '.repeat(2e5) }))"
    await node(code, { protocol: 'stemwork' }).run(context)
    expect(details).toEqual(['la '.repeat(2e5)])
  })

  test('fails if its lines cannot be read, and is ended; the error is not one of the process', async () => {
    const error = new Error('no such line')
    const progress = () => {
      throw error
    }
    const code = "console.log('a line'); setInterval(() => {}, 1000)"
    expect(await rejection(node(code, { progress }).run(contextOf()))).toBe(error)
  })
})

// Process groups are a POSIX feature; on Windows, taskkill is used, which is not tested here.
describe.skipIf(process.platform === 'win32')('a program and all that it started are gone', () => {
  test('after its job was canceled, and after its time was over', async () => {
    const controller = new AbortController()
    const run = rejection(node(twoPrograms).run(contextOf({ signal: controller.signal })))
    const ids = await startedIds()
    controller.abort(new Error('canceled'))
    expect(await run).toMatchObject({ message: 'canceled' })
    await gone(ids)
    await rm(join(directory, 'ids'))
    const late = rejection(node(twoPrograms, { timeoutMs: 1_000 }).run(contextOf()))
    const others = await startedIds()
    expect(await late).toMatchObject({ code: 'TIMEOUT' })
    await gone(others)
  })

  test('after its job was canceled just before the program was started', async () => {
    const controller = new AbortController()
    const outputPath = (name: string) => (controller.abort(new Error('canceled')), join(directory, name))
    const endless = node('setInterval(() => {}, 1000)', { protocol: 'stemwork' })
    const run = endless.run(contextOf({ signal: controller.signal, outputs: ['text'], outputPath }))
    expect(await rejection(run)).toMatchObject({ message: 'canceled' })
  })

  test('after it ended and left something running', async () => {
    const code = twoPrograms
      .replace(/setInterval.*$/, 'process.exit()')
      .replace("{ stdio: 'ignore' })", "{ stdio: 'ignore' }).on('spawn', go); function go() {")
    await node(`${code} }`).run(contextOf())
    await gone(await startedIds())
  })

  test('after its guard was killed', async () => {
    const code = `
      require('node:fs').writeFileSync('ids', String(process.pid))
      process.kill(process.ppid, 'SIGKILL')
      setInterval(() => {}, 1000)`
    const run = rejection(node(code).run(contextOf()))
    const ids = await startedIds()
    expect(await run).toMatchObject({ retryable: true, cause: { message: expect.stringContaining('its guard') } })
    await gone(ids)
  })

  test('or nobody waits for those that left its group, even if they hold its output open', async () => {
    const code = `
      const daemon = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'],
        { detached: true, stdio: 'inherit' })
      daemon.on('spawn', () => (require('node:fs').writeFileSync('daemon', String(daemon.pid)),
        console.log('last words'), process.exit()))`
    const { stdout } = await node(code).run(contextOf())
    const daemonId = Number(await readFile(join(directory, 'daemon'), 'utf8'))
    expect([stdout, await isAlive(daemonId)]).toEqual(['last words\n', true])
    process.kill(daemonId)
  })

  test('after the process that started them was killed', async () => {
    const host = fork(fileURLToPath(new URL('fixtures/program-host.mjs', import.meta.url)), [directory, twoPrograms])
    const ids = await startedIds()
    host.kill('SIGKILL')
    await once(host, 'exit')
    await gone(ids)
  })

  test('after it wrote or held more than it may', async () => {
    const writing = "for (;;) require('node:fs').appendFileSync('big', Buffer.alloc(1e6))"
    expect(await rejection(node(writing, { outputMb: 8 }).run(contextOf()))).toMatchObject({
      code: 'INTERNAL_ERROR',
      retryable: false,
      cause: { message: expect.stringContaining('outputMb') },
    })
    if (process.platform !== 'linux') return
    const holding = 'const all = []; setInterval(() => all.push(Buffer.alloc(2e7, 1)), 10)'
    expect(await rejection(node(holding, { memoryMb: 300 }).run(contextOf()))).toMatchObject({
      retryable: false,
      cause: { message: expect.stringContaining('memoryMb') },
    })
  })
})

describe.skipIf(!hasProgram('ffmpeg'))('a workflow of ffmpeg (skipped where it is not installed)', () => {
  const audio = defineWorkflow({
    id: 'test/ffmpeg',
    name: 'Audio',
    description: '',
    params: z.object({ inputUrl: z.url() }),
    outputs: { audio: { fileName: 'audio.mp3', contentType: 'audio/mpeg' } },
    stages: [
      program('ffmpeg', {
        args: ({ inputs, outputPath }) => ['-nostdin', '-i', inputs.inputUrl?.path ?? '', outputPath('audio')],
        progress: 'ffmpeg',
        badInput: /Invalid data found/,
      }),
    ],
  })

  async function jobOf(path: string) {
    const { engine, parts, until } = testEngine(audio)
    await parts.blobs.put('uploads/input', await readFile(path))
    const stages: number[] = []
    engine.on('job.progressed', ({ job }) => void stages.push(job.progress))
    await engine.start()
    const params = { inputUrl: 'http://localhost/' }
    const { job } = await engine.submit({
      app: 'app',
      workflow: audio.id,
      params,
      uploads: { inputUrl: 'uploads/input' },
    })
    const ended = await until(job.id, 'SUCCEEDED', 'FAILED')
    await engine.close()
    return ended
  }

  test('makes a file, and a broken file is BAD_INPUT at the first attempt with the message of ffmpeg', async () => {
    const song = join(directory, 'song.wav')
    await output('ffmpeg', ['-f', 'lavfi', '-i', 'sine=duration=3', song])
    expect(await jobOf(song)).toMatchObject({ status: 'SUCCEEDED', outputs: { audio: { contentType: 'audio/mpeg' } } })
    await writeFile(song, 'no audio at all')
    const failed = await jobOf(song)
    expect(failed).toMatchObject({
      status: 'FAILED',
      attempts: 1,
      error: { code: 'BAD_INPUT', reason: 'decode_failed' },
    })
    expect(failed.failure).toContain('Invalid data found')
    expect(failed.error?.message).not.toContain('ffmpeg')
  })
})

test('the standard input of the host is left alone: its lines and its end stop nothing', async () => {
  const script = fileURLToPath(new URL('fixtures/program-host.mjs', import.meta.url))
  for (const given of ['{}\n', null, undefined]) {
    const host = spawn(process.execPath, [script, directory, 'setTimeout(() => {}, 100)'], { detached: true })
    if (given !== undefined) host.stdin.write(given ?? '\n')
    if (given === null) host.stdin.end()
    const [[exitCode], errors] = await Promise.all([once(host, 'exit'), text(host.stderr)])
    expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: '' })
    host.stdin.destroy()
  }
})

test('a workflow whose program is missing is unavailable, and the others run', async () => {
  const workflowOf = (id: string, stage: Stage) =>
    defineWorkflow({
      id,
      name: id,
      description: '',
      params: z.object({}),
      inputs: [],
      outputs: {},
      stages: [stage],
    })
  const here = workflowOf('test/here', node(''))
  const lacking = workflowOf('test/lacking', program('no-such-program-of-stemwork', { args: [] }))
  const { engine } = testEngine(here, {}, { workflows: [lacking, here] })
  await engine.start()
  expect([...engine.unavailableWorkflows().keys()]).toEqual(['test/lacking'])
  await engine.close()
})
