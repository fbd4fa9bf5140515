import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { StemworkError } from '../../../engine/errors.js'

export interface FfmpegLimits {
  /** ffmpeg is killed after this time without output while the reader waits. */
  silenceMs: number
  /** Limit of resident memory, watched where the system reports it (Linux). */
  maxBytes: number
}

export const ffmpegLimits: FfmpegLimits = { silenceMs: 30_000, maxBytes: 512 * 1024 * 1024 }

const watchIntervalMs = 200
const pageBytes = 4096
const mostLogCharacters = 32_000

/** A run of ffmpeg. Its output is read on demand: without a reader, the full pipe blocks ffmpeg. */
export type FfmpegProcess = Awaited<ReturnType<typeof startFfmpeg>>

/**
 * Starts ffmpeg, without a shell and with almost none of the environment. It is killed when the signal fires, when it
 * exceeds a limit, and when the reader abandons `output`.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` when the program cannot be started
 */
export async function startFfmpeg(
  program: string,
  args: readonly string[],
  { signal, limits = ffmpegLimits }: { signal?: AbortSignal; limits?: FfmpegLimits },
) {
  signal?.throwIfAborted()
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, LC_ALL: 'C', AV_LOG_FORCE_NOCOLOR: '1' },
    windowsHide: true,
  })
  let log = ''
  let broken: string | undefined
  const closed = once(child, 'close').then(
    () => undefined,
    () => undefined,
  )
  const kill = () => void child.kill('SIGKILL')
  const breakOff = (why: string) => {
    broken ??= why
    kill()
  }
  await started(child, program)
  child.on('error', () => undefined)
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (log.length < mostLogCharacters) log = (log + text).slice(0, mostLogCharacters)
  })
  signal?.addEventListener('abort', kill)
  const watch = watchMemory(child, limits, breakOff)
  void closed.then(() => {
    clearInterval(watch)
    signal?.removeEventListener('abort', kill)
  })

  const end = async (): Promise<void> => {
    kill()
    // Unread output would keep the pipe open.
    child.stdout.destroy()
    await closed
  }

  return {
    output: output(child.stdout, { limits, signal, breakOff, end }),
    /** The log so far, up to a limit. */
    log: () => log,
    /** Kills ffmpeg if it still runs. Resolves when it has exited. */
    end,
    /** How ffmpeg ended, once `output` has ended: exit status 0, or a sentence on what went wrong. */
    async ending(): Promise<0 | string> {
      await closed
      if (broken !== undefined) return broken
      if (child.exitCode === 0) return 0
      return child.signalCode ? `it was killed by ${child.signalCode}` : `it ended with exit status ${child.exitCode}`
    },
  }
}

interface OutputOptions {
  limits: FfmpegLimits
  signal: AbortSignal | undefined
  breakOff(why: string): void
  end(): Promise<void>
}

async function* output(
  stdout: AsyncIterable<Buffer>,
  { limits: { silenceMs }, signal, breakOff, end }: OutputOptions,
): AsyncGenerator<Buffer, void, undefined> {
  const chunks = stdout[Symbol.asyncIterator]()
  try {
    for (;;) {
      const timer = setTimeout(() => breakOff(`it produced no output for ${silenceMs / 1000} seconds`), silenceMs)
      const chunk = await chunks.next().finally(() => clearTimeout(timer))
      signal?.throwIfAborted()
      if (chunk.done) return
      yield chunk.value
    }
  } finally {
    await end()
  }
}

async function started(child: ChildProcess, program: string): Promise<void> {
  const failed = once(child, 'error').then(([error]) => Promise.reject(error as Error))
  await Promise.race([once(child, 'spawn'), failed]).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new StemworkError(
      'MISSING_DEPENDENCY',
      `ffmpeg is allowed as a decoder, but "${program}" could not be started (${why}). Install ffmpeg, or set ` +
        'decoders.ffmpeg to its path.',
      { cause },
    )
  })
}

function watchMemory(child: ChildProcess, { maxBytes }: FfmpegLimits, breakOff: (why: string) => void): NodeJS.Timeout {
  return setInterval(() => {
    void residentBytes(child.pid).then((bytes) => {
      if (bytes > maxBytes) breakOff(`it took more than ${maxBytes / 2 ** 20} MiB of memory`)
    })
  }, watchIntervalMs).unref()
}

/** Resident memory; 0 where the system does not report it. */
async function residentBytes(pid: number | undefined): Promise<number> {
  if (process.platform !== 'linux' || pid === undefined) return 0
  const text = await readFile(`/proc/${pid}/statm`, 'latin1').catch(() => '')
  return Number(text.split(' ')[1] ?? 0) * pageBytes
}
