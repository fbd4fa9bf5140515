import { spawnSync } from 'node:child_process'
import { Console } from 'node:console'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createTestEngine } from '../../../src/testing/index.js'
import { canceled } from '../../../src/core/engine/job/failure.js'
import { errorText } from '../../../src/core/engine/job/error-text.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { jsonLogger, type Logger, silentLogger, textLogger } from '../../../src/core/engine/ports/logger.js'
import { newWebhookSecret } from '../../../src/core/engine/webhooks/signature.js'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { startService } from '../../http/harness.js'
import { recordingLogger, stepsWorkflow, textWorkflow } from '../harness.js'

const failing = () =>
  textWorkflow(() => {
    throw new Error('no disk at /mnt/secret', { cause: new TypeError('quota of 10.0.0.7 exceeded') })
  })

const mayMount = spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0

function collected(): { stream: Writable; output(): string } {
  const chunks: Buffer[] = []
  return {
    stream: new Writable({ write: (chunk: Buffer, _encoding, done) => (chunks.push(chunk), done()) }),
    output: () => Buffer.concat(chunks).toString(),
  }
}

function unreadable(field: string): Error {
  return Object.defineProperty(new Error('seen'), field, {
    get() {
      throw new Error(`no ${field}`)
    },
  })
}

function revokedProxy(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

async function failedJob(logger: Logger) {
  const engine = createTestEngine({ workflows: [failing()], logger, dispatch: { maxAttempts: 1 } })
  const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {} })
  const ended = await engine.run(job.id)
  await engine.close()
  return ended!
}

describe('why a job failed', () => {
  test('is on stderr if the host has no logger, with stack, causes and id; a job that succeeds logs nothing', () => {
    const host = fileURLToPath(new URL('../fixtures/failing-host.mjs', import.meta.url))
    const { stdout, stderr } = spawnSync(process.execPath, [host], { encoding: 'utf8' })
    const { failed, succeeded } = JSON.parse(stdout) as { failed: string; succeeded: string }
    expect(stderr).toMatch(/^stemwork \S+ error The job failed\. \{"jobId":"/)
    expect(stderr).toContain(failed)
    expect(stderr).not.toContain(succeeded)
    expect(stderr).toContain('Error: no disk at /mnt/secret\n')
    expect(stderr).toMatch(/ {4}at .*failing-host\.mjs:\d+/)
    expect(stderr).toContain('caused by TypeError: quota of 10.0.0.7 exceeded')
  })

  test('is in a line of pino, which knows errors by the name `err`', async () => {
    const { stream, output } = collected()
    const job = await failedJob(pino({}, stream))
    const line = JSON.parse(
      output()
        .split('\n')
        .find((one) => one.includes('The job failed.'))!,
    )
    expect(line).toMatchObject({ level: 50, jobId: job.id, msg: 'The job failed.' })
    expect(line.err.message).toContain('no disk at /mnt/secret')
    expect(line.err.message).toContain('quota of 10.0.0.7 exceeded')
    expect(line.err.stack).toContain('failure-report.test.ts')
  })

  test("is in a line of Fastify's logger", async () => {
    const { stream, output } = collected()
    const app = Fastify({ logger: { stream } })
    const job = await failedJob(app.log)
    await app.close()
    const line = JSON.parse(
      output()
        .split('\n')
        .find((one) => one.includes('The job failed.'))!,
    )
    expect(line).toMatchObject({ level: 50, jobId: job.id })
    expect(line.err.stack).toContain('quota of 10.0.0.7 exceeded')
  })

  test('is written by console', async () => {
    const { stream, output } = collected()
    const job = await failedJob(new Console(stream))
    for (const part of [job.id, 'no disk at /mnt/secret', 'quota of 10.0.0.7 exceeded', 'failure-report.test.ts'])
      expect(output()).toContain(part)
  })

  test('is one JSON object in a log for programs, with the stack and the causes', () => {
    const { stream, output } = collected()
    const error = new Error('outer', { cause: new TypeError('inner') })
    jsonLogger(stream, 'warn').error({ jobId: 'one', err: error }, 'It failed.')
    jsonLogger(stream, 'warn').info({}, 'below the level')
    expect(output().split('\n')).toHaveLength(2)
    expect(JSON.parse(output())).toEqual({
      time: expect.stringMatching(/Z$/),
      level: 'error',
      message: 'It failed.',
      jobId: 'one',
      err: expect.stringMatching(/Error: outer\n {4}at .*[^]*TypeError: inner/),
    })
  })

  test('is one line with causes but no stack if the client is at fault; the record has the stack', async () => {
    const { stream, output } = collected()
    const engine = createTestEngine({
      workflows: [
        textWorkflow(() => {
          throw new StemworkError('BAD_INPUT', 'The file is no song.', {
            reason: 'decode_failed',
            cause: new RangeError('no frame\nat byte 7'),
          })
        }),
      ],
      logger: textLogger(stream, 'debug'),
    })
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {} })
    const ended = await engine.run(job.id)
    await engine.close()
    const lines = output().trim().split('\n')
    expect(lines.filter((line) => !/ debug /.test(line))).toEqual([
      expect.stringContaining(
        'warn The job failed. {"jobId":"' +
          `${job.id}","token":1,"why":"StemworkError [BAD_INPUT decode_failed]: The file is no song. caused by ` +
          'RangeError: no frame at byte 7"}',
      ),
    ])
    expect(ended?.failure).toMatch(/ {4}at .*failure-report\.test\.ts/)
  })

  test.skipIf(!existsSync('/dev/full'))('names the folder whose disk is full (skipped without /dev/full)', async () => {
    const { stream, output } = collected()
    const scratchDirectory = await mkdtemp(join(tmpdir(), 'stemwork-full-'))
    const engine = createTestEngine({
      workflows: [textWorkflow(() => writeFile('/dev/full', 'x'))],
      logger: textLogger(stream, 'info'),
      scratchDirectory,
      dispatch: { maxAttempts: 1, maxShutdownRequeues: 0 },
    })
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {} })
    const ended = await engine.run(job.id)
    await engine.close()
    await rm(scratchDirectory, { recursive: true })
    expect(output()).toContain(
      `A disk is full, probably the one with the files of running jobs (${scratchDirectory}). Free some space, or ` +
        'move that folder to another disk: scratchDirectory of the engine, --data or TMPDIR of the command line.',
    )
    expect(output()).toContain('caused by Error [ENOSPC]: ENOSPC: no space left on device, write')
    expect(ended?.error).toMatchObject({ code: 'INTERNAL_ERROR', retryable: true })
    expect(ended?.error?.message).not.toContain('disk')
  })

  /** @param way `grows` or `beside`, as in the fixture */
  async function onFullDisk(way: string): Promise<unknown> {
    const place = await mkdtemp(join(tmpdir(), 'stemwork-full-'))
    await mkdir(join(place, 'disk'))
    const program = fileURLToPath(new URL('../fixtures/full-disk.mjs', import.meta.url))
    const words = ['-rm', process.execPath, program, way]
    const { stdout, stderr } = spawnSync('unshare', words, { cwd: place, encoding: 'utf8', timeout: 30_000 })
    await rm(place, { recursive: true })
    expect(stdout, stderr).toMatch(/^\{/)
    return JSON.parse(stdout)
  }

  describe.skipIf(!mayMount)('on a full disk (skipped without unshare)', () => {
    test('waits for room without using an attempt', async () => {
      expect(await onFullDisk('grows')).toEqual({
        status: 'SUCCEEDED',
        warnings: [
          expect.stringMatching(/^The disk with the files of running jobs has only \d MiB free; .* Free some/),
        ],
      })
    })

    test('leaves the other jobs to workers that have room', async () => {
      expect(await onFullDisk('beside')).toEqual({ succeeded: 9, requeued: 1 })
    })
  })

  test('passes what a workflow says about a full disk to the client unchanged', async () => {
    const own = new StemworkError('INTERNAL_ERROR', 'The archive takes no more songs today.', {
      cause: Object.assign(new Error('no space'), { code: 'ENOSPC' }),
    })
    const engine = createTestEngine({
      workflows: [
        textWorkflow(() => {
          throw own
        }),
      ],
      logger: pino({ level: 'silent' }),
    })
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {} })
    const ended = await engine.run(job.id)
    await engine.close()
    expect(ended?.error).toMatchObject({ message: 'The archive takes no more songs today.', retryable: false })
    expect(ended?.failure).toContain('A disk is full, probably')
  })

  test('ends even if its causes form a circle', async () => {
    const one = new Error('one')
    one.cause = new Error('other', { cause: one })
    const engine = createTestEngine({
      workflows: [
        textWorkflow(() => {
          throw one
        }),
      ],
      logger: pino({ level: 'silent' }),
      dispatch: { maxAttempts: 1 },
    })
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {} })
    expect((await engine.run(job.id))?.status).toBe('FAILED')
    await engine.close()
  })

  test.each<[string, () => unknown]>([
    ...['message', 'name', 'stack', 'code', 'cause'].map((field): [string, () => unknown] => [
      `whose ${field} throws when it is read`,
      () => unreadable(field),
    ]),
    ['whose stack is a number', () => Object.assign(new Error('numbered'), { stack: 5 })],
    ['that is a revoked Proxy', revokedProxy],
  ])('is told of an error %s, and the job ends', async (_, make) => {
    const { stream, output } = collected()
    const throws = () => {
      throw make()
    }
    const engine = createTestEngine({
      workflows: [textWorkflow(throws), stepsWorkflow(throws)],
      logger: pino({}, stream),
      dispatch: { maxAttempts: 1 },
    })
    for (const workflow of ['test/text', 'test/steps']) {
      const { job } = await engine.submit({ app: 'app', workflow, params: {} })
      expect(await engine.run(job.id)).toMatchObject({
        status: 'FAILED',
        error: { code: 'INTERNAL_ERROR' },
        failure: expect.stringMatching(/caused by Error: (an unreadable error was thrown|numbered)/),
      })
    }
    await engine.close()
    expect(output()).toContain('The job failed.')
  })

  test('is told which step has failed, but not of one that has succeeded since', async () => {
    const { logger, lines } = recordingLogger()
    let tries = 0
    const workflow = stepsWorkflow(async ({ step }) => {
      await step.run('early', async () => requireThird(++tries), { maxAttempts: 2, retryDelayMs: 1 })
      if (tries === 3) throw new StemworkError('BAD_INPUT', 'no audio')
    })
    const requireThird = (now: number) => {
      if (now < 3) throw new StemworkError('STORE_UNAVAILABLE', 'not yet', { retryable: true })
    }
    const engine = createTestEngine({ workflows: [workflow], logger, dispatch: { retryDelayMs: 1 } })
    const { job } = await engine.submit({ app: 'app', workflow: 'test/steps', params: {} })
    expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', error: { code: 'BAD_INPUT' } })
    await engine.close()
    const told = lines.filter(({ fields }) => fields.jobId === job.id).map(({ fields }) => fields.step)
    expect(told).toEqual(['early', undefined])
  })

  test('is told of a bad input whose cause cannot be read, and the client what is bad', async () => {
    const workflow = textWorkflow(() => {
      throw new StemworkError('BAD_INPUT', 'no audio', { reason: 'no_audio', cause: unreadable('message') })
    })
    const engine = createTestEngine({ workflows: [workflow], logger: silentLogger })
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {} })
    expect(await engine.run(job.id)).toMatchObject({
      status: 'FAILED',
      attempts: 1,
      error: { code: 'BAD_INPUT', reason: 'no_audio', message: 'no audio' },
      failure: expect.stringContaining('caused by Error: an unreadable error was thrown'),
    })
    await engine.close()
  })

  test('is kept in the record, attempt by attempt, until the job succeeds', async () => {
    let attempts = 0
    const engine = createTestEngine({
      workflows: [
        textWorkflow(() => {
          if (++attempts < 3) throw new Error(`cause ${attempts}`)
        }),
      ],
      logger: pino({ level: 'silent' }),
    })
    const seen: (string | null)[] = []
    engine.on('job.requeued', ({ job }) => seen.push(job.failure))
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {} })
    const ended = await engine.run(job.id)
    expect(seen).toEqual([expect.stringContaining('cause 1'), expect.stringContaining('cause 2')])
    expect(ended).toMatchObject({ status: 'SUCCEEDED', failure: null })
    await engine.close()
  })

  test('is not in any answer, event stream, list or webhook', async () => {
    const delivered: string[] = []
    const receiver = createServer((request, response) => {
      void text(request).then((body) => response.end(void delivered.push(body)))
    })
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const { port } = receiver.address() as AddressInfo
    const jobs = memoryJobs()
    const service = await startService({
      stores: { jobs },
      worker: false,
      engine: { fetch: { allowPrivate: true }, webhooks: { secret: newWebhookSecret() } },
    })
    const created = await service.api('/job', {
      method: 'POST',
      body: JSON.stringify({
        workflow: 'service/held',
        params: {},
        webhook: { url: `http://127.0.0.1:${port}/`, events: null },
      }),
    })
    const { id } = (await created.json()) as { id: string }
    const claimed = await jobs.claim({ id, owner: 'w', leaseMs: 60_000 })
    await jobs.apply(id, {
      kind: 'fail',
      token: claimed!.token,
      error: { code: 'INTERNAL_ERROR', title: 'Failed', message: 'Public words.', reason: null, retryable: false },
      failure: 'Error: planted-cause',
      retentionMs: 60_000,
      messages: [{ id: 'm1', url: `http://127.0.0.1:${port}/`, event: 'job.failed' }],
    })
    expect((await service.engine.get(id))?.failure).toBe('Error: planted-cause')
    expect(await service.engine.sendWebhooks()).toBe(1)
    const answers: string[] = []
    for (const path of [`/job/${id}`, `/job/${id}/status`, `/job/${id}/events`, '/job', '/openapi.json']) {
      const answer = await service.api(path, { headers: { prefer: 'wait=1' } })
      expect(answer.status).toBe(200)
      answers.push(await answer.text())
    }
    expect(answers[0]).toContain('Public words.')
    expect(delivered).toHaveLength(1)
    for (const shown of [...answers, ...delivered]) expect(shown).not.toMatch(/planted-cause|"failure"/)
    await service.close()
    receiver.close()
  })

  test('is not logged as a warning for a job that was canceled on request', async () => {
    const { stream, output } = collected()
    const engine = createTestEngine({
      workflows: [
        textWorkflow(() => {
          throw canceled()
        }),
      ],
      logger: pino({}, stream),
    })
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {} })
    await engine.run(job.id)
    await engine.close()
    expect(JSON.parse(output())).toMatchObject({ level: 30, jobId: job.id })
  })
})

describe('the text of an error', () => {
  test('names codes, reasons and every cause, and is bounded', () => {
    const error = new StemworkError('INTERNAL_ERROR', 'Outer.', {
      reason: 'worker_lost',
      cause: new AggregateError([Object.assign(new Error('first'), { code: 'ECONNREFUSED' }), 'second'], 'both'),
    })
    const text = errorText(error)
    expect(text).toContain('StemworkError [INTERNAL_ERROR worker_lost]: Outer.\n    at ')
    expect(text).toContain('caused by AggregateError: both\n    at ')
    expect(text).toContain('caused by Error [ECONNREFUSED]: first\n')
    expect(text).toContain('caused by second')
    expect(errorText(new Error('x'.repeat(20_000))).length).toBeLessThan(9_000)
    const loop = new Error('loop')
    loop.cause = loop
    expect(errorText(loop)).toContain('caused by more')
  })
})
